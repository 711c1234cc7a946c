import { Buffer } from "node:buffer";
import { isIP } from "node:net";
import { ifFound } from "../api/api_error.ts";
import { builtIn, kindText, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText } from "../api/object_key.ts";
import type { Client } from "../client/client.ts";
import { host } from "../client/host.ts";
import { openHttpTransport } from "../client/transport/open_transport.ts";
import {
  type NamedWebhookHost,
  parseReview,
  type WebhookClientConfig,
  type WebhookRoute,
} from "../client/webhook_host.ts";
import { conversionHandler } from "../conversion/conversion_review.ts";
import type { FailedConversion } from "../conversion/convert_object.ts";
import {
  CONVERT_PATH,
  registerConversion,
} from "../conversion/register_conversion.ts";
import type { DefinedKind } from "../crd/kind_definition.ts";
import { deadline, systemClock, type Timer } from "../clock.ts";
import { pauseAfter } from "../pace.ts";
import type { Admission } from "./admission_options.ts";
import { applyPolicy, deletePolicy } from "./policy_registration.ts";
import { type AdmissionDeps, admissionRoute } from "./admission_webhook.ts";
import { expiryOf, ROTATION_TIMES } from "./certificate_rotation.ts";
import {
  AuthorityFile,
  type CertificateSource,
  FileCertificates,
  filesIn,
  SECRET,
  SecretCertificates,
  type SecretCertificatesDeps,
  type ServedCertificates,
} from "./served_certificates.ts";
import {
  CONFIGURATIONS,
  HANDLERS,
  type OperatorIdentity,
  type RegisteredAdmission,
  registeredWebhooks,
} from "./webhook_configurations.ts";
import type { ServerIdentity } from "./tls_server.ts";
import { LISTENER_PATH, WebhookListener } from "./webhook_listener.ts";
import {
  CERT_MANAGER_DIRECTORY,
  type WebhookPlace,
  type WebhookServerSettings,
} from "./webhook_options.ts";
import { errorMessage } from "../error_text.ts";

/** Health of the webhooks of an operator. */
export interface WebhookHealth {
  /** Whether requests are answered. */
  readonly ready: boolean;
  /** Whether the API server has been told of all webhooks. */
  readonly registered: boolean;
  /** Port of the listener; undefined without one. */
  readonly port: number | undefined;
  /**
   * End of the validity of the certificate, in milliseconds since the Unix epoch;
   * undefined without one.
   */
  readonly certificateExpires: number | undefined;
  /** Why they could not be registered or renewed last; undefined if they were. */
  readonly error: string | undefined;
}

/** Admission of an operator, and where it applies. */
export interface PlacedAdmission {
  readonly admission: Admission;
  /** Returns the namespaces whose objects are admitted. */
  readonly namespaces: () => "all" | readonly string[];
  /** Whether it is in use; its controller may have been unregistered. */
  readonly isActive: () => boolean;
}

/** What {@linkcode Webhooks} depend on. */
export interface WebhooksDeps extends Omit<AdmissionDeps, "checksDefaults"> {
  readonly client: Client;
  /** Signal that aborts when the operator stops. */
  readonly signal: AbortSignal;
  /** Whether a tool such as `coracle dev` runs the operator. */
  readonly isDeveloped: boolean;
}

/** Interval of checks of certificates and registration, in milliseconds. */
const CHECK_INTERVAL_MS = 60_000;
/** Maximum number of failed conversions that are remembered. */
const MOST_LOGGED = 1_000;
/** Pauses after failed checks. */
const PAUSE = { initial: 1_000, max: CHECK_INTERVAL_MS } as const;
/**
 * Time for which the operator of a tool answers after another process has taken
 * over, in milliseconds.
 */
const HAND_OVER_MS = 1_000;
/** Time limit for the listener to answer its own check, in milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;

const SELF_REVIEW: ResolvedKind<
  KubernetesObject & {
    readonly status?: { readonly userInfo?: { readonly username?: string } };
  }
> = builtIn("SelfSubjectReview", "Cluster", "authentication.k8s.io");

/** Serves webhooks, and says how API servers reach them. */
interface Endpoint {
  readonly port: number | undefined;
  readonly certificateExpires: number | undefined;
  /**
   * Whether there is anything to renew: certificates, or a registration that others
   * may change. Without it a registered operator is at rest.
   */
  readonly renews: boolean;
  /** Whether it ends with the process, and its registration with it. */
  readonly isTemporary: boolean;
  /** Namespace of the operator; undefined outside of the cluster. */
  readonly namespace: string | undefined;
  /** Name of the configurations. */
  readonly name: string;
  /** Namespace and name of the Secret with its own certificates, if it has some. */
  readonly secret?: SecretCertificatesDeps["key"] | undefined;
  /** Begins to answer. */
  open(): Promise<void>;
  /** Renews what it needs; resolves when API servers reach it. */
  check(): Promise<void>;
  clientConfig(path: string): WebhookClientConfig;
  /** Sends API servers to other replicas, where there may be some. */
  leave?(limit: number, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * Webhooks of an operator: routes of its admission handlers, where they are served,
 * and their registration, which follows as soon as they can be reached.
 *
 * Every replica serves and registers; a leader has no part in it.
 */
export class Webhooks {
  readonly #deps: WebhooksDeps;
  readonly #routes: Map<string, WebhookRoute> = new Map();
  readonly #admissions: (PlacedAdmission & { readonly number: number })[] = [];
  readonly #endpoint: Endpoint;
  #converted: readonly DefinedKind[] = [];
  /** Admissions whose policies the API server enforces. */
  readonly #inForce: Set<Admission> = new Set();
  /** Failed conversions that were logged. */
  readonly #logged: Set<string> = new Set();
  readonly #checksDefaults: boolean;
  #account: string | undefined;
  #isOpen = false;
  #isRegistered = false;
  #error: string | undefined;
  #failures = 0;
  #timer: Timer | undefined;
  #checking: Promise<void> | undefined;

  /**
   * Creates webhooks that are not served yet.
   *
   * @param place Where they are served; undefined if there are only policies.
   */
  constructor(
    place: WebhookPlace | undefined,
    { fallbackName, ...deps }: WebhooksDeps & {
      /** Name of the configurations without a Service and a name. */
      readonly fallbackName: string;
    },
  ) {
    this.#deps = deps;
    this.#checksDefaults = deps.isDeveloped ||
      place !== undefined && isHost(place);
    this.#endpoint = place === undefined
      ? unserved(fallbackName, deps.isDeveloped)
      : isHost(place)
      ? hosted(place, this.#routes, place.name ?? fallbackName)
      : new ListenerEndpoint(place, {
        ...deps,
        routes: this.#routes,
        fallbackName,
        isRegistered: (bundle) => this.#hasBundle(bundle),
      });
  }

  /** Adds the handlers of a kind; they are registered with the next check. */
  add(placed: PlacedAdmission): void {
    const { admission } = placed;
    const { kind, handlers } = admission;
    const same = this.#admissions.filter((other) =>
      kindText(other.admission.kind) === kindText(kind)
    );
    const added = { ...placed, number: same.length + 1 };
    this.#admissions.push(added);
    const deps = { ...this.#deps, checksDefaults: this.#checksDefaults };
    for (const handler of HANDLERS) {
      if (handlers[handler] === undefined) continue;
      this.#routes.set(
        pathOf(added, handler),
        admissionRoute(admission, handler, deps),
      );
    }
  }

  /** Adds the conversion between the versions of kinds. */
  convert(kinds: readonly DefinedKind[]): void {
    if (kinds.length === 0) return;
    this.#converted = kinds;
    const convert = conversionHandler(kinds, {
      failed: ({ object: { metadata }, from, to, reason }) =>
        this.#unconverted(keyText(metadata), { from, to, reason }),
    });
    this.#routes.set(
      CONVERT_PATH,
      (body, { signal }) => convert(parseReview(body), signal),
    );
  }

  /** Whether the API server enforces the policy of an admission. */
  isInForce(admission: Admission): boolean {
    return this.#inForce.has(admission);
  }

  /** Place where API servers call the operator for conversions. */
  get conversion(): WebhookClientConfig {
    return this.#endpoint.clientConfig(CONVERT_PATH);
  }

  /** Writes into the definitions that exist who converts their objects. */
  async registerConversions(): Promise<void> {
    const { client, signal } = this.#deps;
    for (const kind of this.#converted) {
      await registerConversion(client, kind, {
        clientConfig: this.conversion,
        fieldManager: FIELD_MANAGER,
        signal,
      });
    }
  }

  /** Logs an object that cannot be converted; it may come with each list. */
  #unconverted(
    object: string,
    failure: Pick<FailedConversion, "from" | "to" | "reason">,
  ): void {
    const text = `${object} ${failure.from} ${failure.to} ${failure.reason}`;
    if (this.#logged.has(text)) return;
    if (this.#logged.size >= MOST_LOGGED) this.#logged.clear();
    this.#logged.add(text);
    this.#deps.log.warn("Cannot convert an object", { object, ...failure });
  }

  /** Begins to serve. */
  async open(): Promise<void> {
    await this.#endpoint.open();
    this.#isOpen = true;
  }

  /**
   * Registers the webhooks, and keeps certificates and registration up to date.
   *
   * @returns Resolves when they are registered; for those behind a Service when
   * the registration has begun, since a Service only leads to replicas that are
   * ready.
   */
  async register(): Promise<void> {
    const first = this.#check();
    if (this.#endpoint.namespace === undefined) await first;
    first.catch((error: unknown) => this.#failed(error)).finally(() =>
      this.#schedule()
    );
  }

  /**
   * Deletes configurations, policies and the Secret from the cluster.
   *
   * @param taken Names of the policies of the process that has taken over, if any:
   * those stay, and so do configurations that lead to that process.
   */
  async remove(taken?: readonly string[]): Promise<void> {
    this.#timer?.cancel();
    this.#isRegistered = false;
    const { client } = this.#deps;
    const { name, secret, isTemporary } = this.#endpoint;
    for (const handler of HANDLERS) {
      if (taken !== undefined && !await this.#leadsHere(handler)) continue;
      await ifFound(client.delete(CONFIGURATIONS[handler], { name }));
    }
    for (const { admission: { policy } } of this.#admissions) {
      if (policy === undefined) continue;
      if (taken?.includes(policy.policy.metadata.name)) continue;
      await deletePolicy(policy, client);
    }
    this.#inForce.clear();
    if (secret !== undefined && !isTemporary) {
      await ifFound(client.delete(SECRET, secret));
    }
  }

  /**
   * Goes on to answer until API servers have moved to other replicas.
   *
   * @param limit Maximum time, in milliseconds.
   * @param hurry Signal that ends it early.
   */
  async leave(limit: number, hurry: AbortSignal): Promise<void> {
    // From now on others register.
    this.#timer?.cancel();
    const { isTemporary, namespace } = this.#endpoint;
    // Only a Service leads to others, and a tool runs the operator alone.
    if (!this.#isOpen || isTemporary || namespace === undefined) return;
    await this.#endpoint.leave?.(limit, hurry);
  }

  /**
   * Stops serving; the registration stays, since other replicas serve.
   *
   * @param taken Names of the policies of the process that has taken over from a tool's
   * operator, if any.
   */
  async close(taken?: readonly string[]): Promise<void> {
    this.#timer?.cancel();
    await this.#checking?.catch(() => {});
    this.#timer?.cancel();
    if (this.#endpoint.isTemporary) {
      await this.remove(taken).catch((error: unknown) =>
        this.#deps.log.debug("Cannot remove webhooks", { error })
      );
      // Calls may be on their way, by the previous registration.
      if (taken !== undefined && this.#isOpen) {
        await this.#endpoint.leave?.(
          HAND_OVER_MS,
          new AbortController().signal,
        );
      }
    }
    this.#isOpen = this.#isRegistered = false;
    await this.#endpoint.close();
  }

  health(): WebhookHealth {
    const { port, certificateExpires } = this.#endpoint;
    return {
      ready: this.#isOpen,
      registered: this.#isRegistered,
      port,
      certificateExpires,
      error: this.#error,
    };
  }

  #schedule(): void {
    const { clock, signal } = this.#deps;
    if (signal.aborted) return;
    if (this.#failures === 0 && !this.#endpoint.renews) return;
    const pause = this.#failures === 0
      ? CHECK_INTERVAL_MS
      : pauseAfter(this.#failures, PAUSE);
    this.#timer?.cancel();
    this.#timer = clock.setTimer(() => {
      this.#check().catch((error: unknown) => this.#failed(error)).finally(() =>
        this.#schedule()
      );
    }, pause);
  }

  #failed(error: unknown): void {
    if (this.#deps.signal.aborted) return;
    this.#failures++;
    const text = errorMessage(error);
    const { log } = this.#deps;
    // Each cause once: a Service takes a while to lead to the first replica.
    if (text !== this.#error) {
      const failure = this.#isRegistered
        ? "Cannot renew the webhooks, which are tried again"
        : "Cannot register the webhooks yet, which are tried again";
      log.warn(failure, { error });
    }
    this.#error = text;
  }

  /** Renews certificates and registration; one check at a time. */
  #check(): Promise<void> {
    return this.#checking ??= this.#renew().finally(() => {
      this.#checking = undefined;
    });
  }

  async #renew(): Promise<void> {
    await this.#endpoint.check();
    this.#account ??= await this.#ownAccount();
    await this.#applyPolicies();
    for (const handler of HANDLERS) await this.#apply(handler);
    await this.registerConversions();
    if (!this.#isRegistered) {
      this.#deps.log.info("Registered webhooks", {
        configuration: this.#endpoint.name,
        webhooks: [...this.#routes.keys()],
      });
    }
    this.#isRegistered = true;
    this.#error = undefined;
    this.#failures = 0;
  }

  /** Applies the policies; the webhooks of handlers stand in for the others. */
  async #applyPolicies(): Promise<void> {
    const { client, log, signal } = this.#deps;
    for (const { admission } of this.#admissions) {
      const { policy, handlers } = admission;
      if (policy === undefined) continue;
      const isServed = await applyPolicy(policy, {
        client,
        fieldManager: FIELD_MANAGER,
        signal,
      });
      const { kind, metadata: { name } } = policy.policy;
      const wasInForce = this.#inForce.has(admission);
      if (isServed) this.#inForce.add(admission);
      else this.#inForce.delete(admission);
      if (!isServed && Object.keys(handlers).length === 0) {
        throw new Error(
          `Cannot apply the ${kind} ${name}: the API server has them from Kubernetes ${policy.since} on, and no handler stands in its place`,
        );
      }
      if (isServed === wasInForce && this.#isRegistered) continue;
      log.info(
        isServed
          ? "The API server enforces a policy"
          : "A webhook stands in for a policy, which the API server lacks",
        { policy: name, since: policy.since },
      );
    }
  }

  /** Service account of the operator; empty for another user, who may be a person. */
  async #ownAccount(): Promise<string> {
    const { client, signal } = this.#deps;
    const { status } = await client.create(SELF_REVIEW, { metadata: {} }, {
      signal,
    });
    const { username = "" } = status?.userInfo ?? {};
    return username.startsWith("system:serviceaccount:") ? username : "";
  }

  /** Applies a configuration unless it is as wanted, and deletes an empty one. */
  async #apply(handler: (typeof HANDLERS)[number]): Promise<void> {
    const { client, signal } = this.#deps;
    const { name, namespace } = this.#endpoint;
    const kind = CONFIGURATIONS[handler];
    const operator: OperatorIdentity = {
      namespace,
      account: this.#account || undefined,
    };
    const admissions: RegisteredAdmission[] = [];
    for (const placed of this.#admissions) {
      const { admission } = placed;
      if (!placed.isActive() || this.#inForce.has(admission)) continue;
      const { handlers, options, conditions, kind } = admission;
      admissions.push({
        handlers,
        options,
        conditions,
        kind: await client.resolve(kind),
        paths: {
          default: pathOf(placed, "default"),
          validate: pathOf(placed, "validate"),
        },
        number: placed.number,
        namespaces: placed.namespaces(),
      });
    }
    const webhooks = registeredWebhooks(handler, admissions, {
      operator,
      clientConfig: (path) => this.#endpoint.clientConfig(path),
    });
    // An earlier version of the operator may have had such handlers.
    const isUnused = webhooks.length === 0 &&
      await client.find(kind, { name }, { signal }) === undefined;
    if (isUnused) return;
    // The server answers an apply that changes nothing without a write.
    await client.apply(kind, {
      metadata: {
        name,
        labels: { "app.kubernetes.io/managed-by": "coracle" },
      },
      webhooks,
    }, { force: true, fieldManager: FIELD_MANAGER, signal });
  }

  /** Whether a configuration leads API servers to this process. */
  async #leadsHere(handler: (typeof HANDLERS)[number]): Promise<boolean> {
    const { name } = this.#endpoint;
    const found = await this.#deps.client.find(CONFIGURATIONS[handler], {
      name,
    });
    const { url } = this.#endpoint.clientConfig("/");
    return url !== undefined && found !== undefined &&
      (found.webhooks ?? []).every((webhook) =>
        webhook.clientConfig.url?.startsWith(url)
      );
  }

  /** Whether each registered webhook has a bundle. */
  async #hasBundle(bundle: string): Promise<boolean> {
    const { client, signal } = this.#deps;
    const { name } = this.#endpoint;
    const encoded = base64(bundle);
    for (const handler of HANDLERS) {
      const found = await client.find(CONFIGURATIONS[handler], { name }, {
        signal,
      });
      const webhooks = found?.webhooks ?? [];
      const isOld = webhooks.some(({ clientConfig }) =>
        clientConfig.caBundle !== encoded
      );
      if (isOld) return false;
    }
    return true;
  }
}

/** Text in base64; files may have comments in any language. */
function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** Field manager of the configurations. */
const FIELD_MANAGER = "coracle-webhooks";

/** Path of a handler on the listener, such as `/validate/batch.sample.dev/v1/cronjob`. */
function pathOf(
  { admission: { kind }, number }: {
    readonly admission: Admission;
    readonly number: number;
  },
  handler: (typeof HANDLERS)[number],
): string {
  const { group, version, kind: name } = kind;
  const suffix = number === 1 ? "" : `/${number}`;
  return `/${handler}/${
    group || "core"
  }/${version}/${name.toLowerCase()}${suffix}`;
}

function isHost(place: WebhookPlace): place is NamedWebhookHost {
  return "serve" in place;
}

/** Endpoint of an operator that has only policies. */
function unserved(name: string, isTemporary: boolean): Endpoint {
  return {
    port: undefined,
    certificateExpires: undefined,
    renews: !isTemporary,
    isTemporary,
    namespace: undefined,
    name,
    open: () => Promise.resolve(),
    check: () => Promise.resolve(),
    clientConfig: () => ({}),
    close: () => Promise.resolve(),
  };
}

/** Endpoint of a host in the same process. */
function hosted(
  place: NamedWebhookHost,
  routes: ReadonlyMap<string, WebhookRoute>,
  name: string,
): Endpoint {
  let served: ReturnType<NamedWebhookHost["serve"]> | undefined;
  return {
    port: undefined,
    certificateExpires: undefined,
    renews: false,
    isTemporary: true,
    namespace: undefined,
    name,
    open: async () => void (served = await place.serve(routes)),
    check: () => Promise.resolve(),
    clientConfig: (path) => served?.clientConfig(path) ?? {},
    close: () => Promise.resolve(served?.close()),
  };
}

/** What a {@linkcode ListenerEndpoint} depends on. */
interface ListenerDeps extends WebhooksDeps {
  readonly routes: ReadonlyMap<string, WebhookRoute>;
  readonly fallbackName: string;
  /** Whether each registered webhook has a bundle. */
  readonly isRegistered: (bundle: string) => Promise<boolean>;
}

/** Endpoint of a listener of this process, with certificates. */
class ListenerEndpoint implements Endpoint {
  readonly name: string;
  readonly secret: SecretCertificatesDeps["key"] | undefined;
  readonly namespace: string | undefined;
  readonly isTemporary: boolean;
  readonly renews = true;
  readonly #settings: WebhookServerSettings;
  readonly #deps: ListenerDeps;
  readonly #listener: WebhookListener;
  readonly #source: CertificateSource;
  /** Authorities of the client certificates of callers. */
  readonly #callers: AuthorityFile | undefined;
  /** Name under which API servers call the listener. */
  readonly #host: string;
  #served: ServedCertificates | undefined;

  constructor(settings: WebhookServerSettings, deps: ListenerDeps) {
    const { client } = deps;
    const { service, url, certificates } = settings;
    const { namespace = client.namespace } = service ?? {};
    if (namespace === undefined && (service || certificates === "self")) {
      throw new TypeError(
        "Cannot serve webhooks: neither the kubeconfig's context nor the service account names a namespace, so set it with { webhooks: { service: { namespace, name } } }",
      );
    }
    this.#settings = settings;
    this.#deps = deps;
    this.isTemporary = deps.isDeveloped;
    this.namespace = service && namespace;
    this.#host = service
      ? `${service.name}.${namespace}.svc`
      : (URL.parse(url ?? "")?.hostname ?? "").replace(/^\[|\]$/g, "");
    this.name = settings.name ??
      (service ? `${service.name}.${namespace}` : deps.fallbackName);
    const { callers } = settings;
    this.#listener = new WebhookListener(deps.routes, {
      ...settings,
      callers: callers && (callers.names ?? "all"),
      clock: deps.clock,
      log: deps.log,
      metrics: deps.metrics,
    });
    this.#callers = callers && new AuthorityFile(callers.caFile, deps.log);
    const key = { namespace: namespace ?? "", name: this.name };
    this.secret = certificates === "self" ? key : undefined;
    this.#source = certificates === "self"
      ? new SecretCertificates({
        ...deps,
        key,
        hosts: [this.#host],
        times: ROTATION_TIMES,
      })
      : new FileCertificates(
        certificates === "cert-manager"
          ? filesIn(CERT_MANAGER_DIRECTORY)
          : "directory" in certificates
          ? filesIn(certificates.directory)
          : certificates,
        { log: deps.log, subject: "webhook" },
      );
  }

  get port(): number | undefined {
    return this.#listener.port;
  }

  get certificateExpires(): number | undefined {
    return this.#served && expiryOf(this.#served.serving.certificate);
  }

  async open(): Promise<void> {
    const served = await this.#source.read(this.#deps.signal);
    this.#served = served;
    await this.#listener.start(await this.#identity(served));
    this.#deps.log.info("Webhooks listen", { port: this.port });
    // The certificate must have the name that API servers call.
    const { host: own } = this.#settings;
    const address = own === "0.0.0.0" || own === "::" ? "127.0.0.1" : own;
    if (isIP(this.#host) !== 0 && this.#host !== address) return;
    await this.#answers(
      `https://${isIP(address) === 6 ? `[${address}]` : address}:${this.port}`,
    );
  }

  async check(): Promise<void> {
    const served = this.#served = await this.#source.read(this.#deps.signal);
    await this.#listener.use(await this.#identity(served));
    const { service } = this.#settings;
    await this.#answers(
      service ? `https://${this.#host}:${service.port ?? 443}` : this.#url,
      service && host().addressOf?.(this.#host),
    );
  }

  async #identity({ serving }: ServedCertificates): Promise<ServerIdentity> {
    return { ...serving, clientAuthorities: await this.#callers?.read() };
  }

  /** Base URL of the webhooks, without a slash at the end. */
  get #url(): string {
    const url = new URL(this.#settings.url ?? "");
    // A URL without a port is one of port 443.
    if (url.port === "0") url.port = String(this.port);
    return url.href.replace(/\/$/, "");
  }

  clientConfig(path: string): WebhookClientConfig {
    const { service } = this.#settings;
    const { namespace = "" } = this;
    const caBundle = base64(this.#served?.bundle ?? "");
    return service === undefined ? { url: `${this.#url}${path}`, caBundle } : {
      service: {
        namespace,
        name: service.name,
        port: service.port ?? 443,
        path,
      },
      caBundle,
    };
  }

  async leave(limit: number, signal: AbortSignal): Promise<void> {
    await this.#listener.leave(limit, signal);
  }

  async close(): Promise<void> {
    await this.#listener.stop();
  }

  /**
   * Resolves when the listener answers under a URL, with a certificate that the
   * bundle trusts.
   *
   * @param address Address of the host of the URL; undefined to ask DNS.
   * @throws {Error} If it does not.
   */
  async #answers(server: string, address?: string): Promise<void> {
    const transport = await openHttpTransport({
      server: address === undefined
        ? server
        : server.replace(this.#host, address),
      // TLS has no names that are addresses.
      serverName: isIP(this.#host) === 0 ? this.#host : undefined,
      certificateAuthority: this.#served?.bundle,
      connectTimeout: PROBE_TIMEOUT_MS,
    });
    const cannot = (why: string) =>
      new Error(`Cannot reach the webhooks at ${server}: ${why}`);
    try {
      const ask = async (signal: AbortSignal) => {
        const path = LISTENER_PATH;
        const request = { method: "GET", path, headers: {}, signal } as const;
        const { status, body } = await transport.send(request);
        for await (const _ of body);
        if (status !== 200) throw cannot(`the answer is HTTP ${status}`);
      };
      await deadline(ask, PROBE_TIMEOUT_MS, {
        clock: systemClock, // Its sockets are real.
        signal: this.#deps.signal,
        onTimeout: () => cannot(`no answer within ${PROBE_TIMEOUT_MS} ms`),
      });
    } catch (error) {
      this.#deps.signal.throwIfAborted();
      const text = errorMessage(error);
      throw text.startsWith("Cannot reach the webhooks")
        ? error
        : cannot(text.replace(/^.*?: /, ""));
    } finally {
      transport.close();
    }
  }
}
