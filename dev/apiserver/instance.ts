import type { Clock, Logger } from "@coracle/operator/client";
import type { Service } from "@coracle/operator/kinds";
import { type KeyPair, loadModule } from "@coracle/operator/internal";
import { Authenticator } from "./access/authenticator.ts";
import { RoleAuthorizer } from "./access/role_authorizer.ts";
import { ServiceAccountTokens } from "./access/service_account_tokens.ts";
import type { ApiContext } from "./api_context.ts";
import { AdmissionChain } from "./admission/admission.ts";
import { dynamicPlugins } from "./admission/dynamic_admission.ts";
import { QuotaTracker } from "./admission/quota_tracker.ts";
import { admissionPlugins } from "./admission/plugins.ts";
import { WebhookCaller } from "./admission/webhook_caller.ts";
import { bootstrap } from "./bootstrap.ts";
import { CrdController } from "./controllers/crd_controller.ts";
import { GarbageCollector } from "./controllers/garbage_collector.ts";
import { startRoleAggregation } from "./controllers/role_aggregation.ts";
import {
  controllerSwitch,
  defaultControllers,
} from "./controllers/controller_names.ts";
import { QuotaController } from "./controllers/quota_controller.ts";
import { startPolicyController } from "./controllers/policy_controller.ts";
import { NamespaceController } from "./controllers/namespace_controller.ts";
import type { ServerRequest } from "./http/exchange.ts";
import { OpenApiRoutes } from "./discovery/openapi_routes.ts";
import { FlowControl } from "./flow_control.ts";
import { DEFAULT_RELEASE, RELEASES } from "./kubernetes_release.ts";
import type { Random } from "./random.ts";
import { WatchHub } from "./read/watch_hub.ts";
import type { BuiltinResources, CustomResources } from "./registry.ts";
import { RequestHandler } from "./request_handler.ts";
import type { User } from "./request/user.ts";
import { Resources } from "./resources.ts";
import type { ApiServerOptions } from "./server_options.ts";
import type {
  JournalContent,
  JournalObject,
  ServerContent,
} from "./storage/file_journal.ts";
import { Store } from "./storage/store.ts";
import { storageKey, StoredObject } from "./storage/stored_object.ts";

/** Paths of the resources that controllers reconcile. */
const RECONCILED =
  /^\/apis\/(?:apps|batch|policy|discovery\.k8s\.io|certificates\.k8s\.io|storagemigration\.k8s\.io)\/|^\/api\/v1\/.*(?:pods|nodes|services|endpoints|replicationcontrollers|persistentvolume|secrets|bindings)/;

/** Dependencies of an {@linkcode Instance}, and the server's options for it. */
export interface InstanceOptions extends
  Pick<
    ApiServerOptions,
    | "audit"
    | "authorization"
    | "controllers"
    | "bookmarks"
    | "disabledAdmission"
    | "featureGates"
    | "history"
    | "pods"
    | "serviceAccounts"
    | "services"
    | "simulate"
    | "version"
    | "webhookCertificate"
  > {
  readonly builtin: BuiltinResources;
  readonly crd: CustomResources;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Delay until a new CRD is established, in milliseconds. */
  readonly establishingDelay: number;
  /** Function that returns the user of a token of the options. */
  readonly authenticate: (token: string) => User | undefined;
  /** Certificate authority, created when it is first needed. */
  readonly authority: () => KeyPair;
  /** Objects from an earlier instance or a file. */
  readonly content: ServerContent | undefined;
  /** State of another instance, with which this one goes on in place of content. */
  readonly point?: ServerPoint | undefined;
}

/** State of a server from which others can go on. */
export interface ServerPoint {
  readonly store: Store;
  readonly revision: number;
  /** Random values from then on; each server copies it. */
  readonly random: Random;
  /** Whether the controllers of workloads were running. */
  readonly hasControllers: boolean;
}

/**
 * Running state of a server from a start to a stop or crash: store, controllers
 * and request handler.
 */
export class Instance {
  readonly context: ApiContext;
  readonly handler: RequestHandler;
  readonly #controllers: { stop(): void }[];
  readonly #isEnabled: ReturnType<typeof controllerSwitch>;
  readonly #simulate: InstanceOptions["simulate"];
  readonly #authority: () => KeyPair;
  readonly #isPart: boolean;
  readonly #turn: ServerContent["turn"];
  #loading: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: InstanceOptions) {
    const { builtin, crd, clock, random, logger, authority } = options;
    this.#simulate = options.simulate;
    this.#authority = options.authority;
    this.#isPart = options.content?.isPart === true;
    this.#turn = options.content?.turn;
    const store = new Store({ history: options.history });
    const release = options.version === undefined
      ? DEFAULT_RELEASE
      : RELEASES[options.version];
    const resources = new Resources(builtin.builtinDefinitions(release));
    const accountTokens = new ServiceAccountTokens({
      store,
      clock,
      random,
      key: () => authority().key,
      settings: options.serviceAccounts,
    });
    const context: ApiContext = {
      store,
      resources,
      watches: new WatchHub(store, clock, options.bookmarks),
      clock,
      random,
      logger,
      release,
      featureGates: options.featureGates ?? {},
      pods: options.pods ?? {},
      admission: new AdmissionChain(
        admissionPlugins(dynamicPlugins(store), options.disabledAdmission),
      ),
      quotas: new QuotaTracker(store, clock),
      flows: new FlowControl({ store, resources, clock }),
      webhooks: new WebhookCaller({
        clock,
        services: options.services ?? {},
        externalName: (namespace, name) => {
          const object = store.collection({ group: "", plural: "services" })
            .get(storageKey({ namespace, name }))?.parse() as Service;
          return object && (object.spec?.externalName ?? "");
        },
        certificate: options.webhookCertificate,
      }),
      accountTokens,
      authenticator: new Authenticator(options.authenticate, accountTokens),
      authorizer: new RoleAuthorizer({
        store,
        resources,
        clock,
        random,
        release,
        allowsAll: options.authorization === "none",
      }),
    };
    this.context = context;
    const definitions = new CrdController(
      context,
      crd,
      options.establishingDelay,
    );
    const { simulate, controllers = defaultControllers(Boolean(simulate)) } =
      options;
    this.#isEnabled = controllerSwitch(controllers);
    const isEnabled = this.#isEnabled;
    const namespaces = new NamespaceController(context, {
      authority: () => authority().certificate,
      isEnabled,
      hasKubelet: Boolean(simulate),
    });
    const quotas = isEnabled("resourcequota-controller")
      ? [new QuotaController(context)]
      : [];
    const collectors = isEnabled("garbage-collector-controller")
      ? [new GarbageCollector(context)]
      : [];
    this.#controllers = [
      definitions,
      namespaces,
      ...quotas,
      ...(isEnabled("clusterrole-aggregation-controller")
        ? [startRoleAggregation(context)]
        : []),
      ...(isEnabled("validatingadmissionpolicy-status-controller")
        ? [startPolicyController(context)]
        : []),
      ...collectors,
    ];
    const { content, point } = options;
    if (point !== undefined) {
      store.resumeFrom(point.store, point.revision);
      definitions.begin();
    } else if (content === undefined) bootstrap(context);
    else this.#load(content, definitions);
    if (content !== undefined || point !== undefined) {
      for (const collector of collectors) collector.begin(content?.isPart);
    }
    if (point === undefined) store.begin();
    namespaces.begin();
    for (const controller of quotas) controller.begin();
    this.handler = new RequestHandler({
      context,
      audit: options.audit,
      openApi: new OpenApiRoutes(context),
    });
  }

  /** Loads objects; CRDs are loaded before their custom resources. */
  #load(content: ServerContent, definitions: CrdController): void {
    const { store, resources, logger } = this.context;
    const restore = ({ group, plural, object, revision }: JournalObject) => {
      const definition = resources.find(group, plural);
      if (definition === undefined) return false;
      store.collectionOf(definition).restore(
        new StoredObject(definition, object, {
          revision,
          current: !definition.custom,
        }),
      );
      return true;
    };
    store.resumeAt(content.revision);
    const custom: JournalObject[] = [];
    let isDefined = false;
    for (const entry of content.objects) {
      if (restore(entry)) continue;
      // Those of a part come first, and its other objects may be too many to keep.
      if (content.isPart && !isDefined) {
        isDefined = true;
        definitions.begin();
        if (restore(entry)) continue;
      }
      custom.push(entry);
    }
    if (!isDefined) definitions.begin();
    for (const entry of custom) {
      if (restore(entry)) continue;
      const { group, plural } = entry;
      logger.warn("Cannot load an object whose kind nobody defines", {
        group,
        plural,
        name: entry.object.metadata.name,
      });
    }
  }

  /** Objects of the store, to pass to a later instance. */
  content(): JournalContent {
    const { store } = this.context;
    const objects: JournalObject[] = [];
    for (const collection of store.collections()) {
      for (const stored of collection.values()) {
        objects.push({
          ...collection.resource,
          revision: stored.revision,
          object: stored.parse(),
        });
      }
    }
    return { revision: store.revision, objects };
  }

  /** Current state, from which others can go on. */
  point(): ServerPoint {
    const { store, random } = this.context;
    return {
      store,
      revision: store.revision,
      random: random.copy(),
      hasControllers: this.#loading !== undefined,
    };
  }

  /** Whether a request may affect the controllers that are not loaded yet. */
  needsControllers({ method, target }: ServerRequest): boolean {
    return this.#loading === undefined && method !== "GET" &&
      RECONCILED.test(target);
  }

  /** Loads and starts the controllers of workloads, at most once. */
  startControllers(): Promise<void> {
    return this.#loading ??= this.#startControllers();
  }

  async #startControllers(): Promise<void> {
    const { startControllers } = await loadModule(
      import("./controllers/controller_table.ts"),
    );
    const simulate = this.#simulate;
    const { nodes = 1 } = typeof simulate === "object" ? simulate : {};
    if (this.#isStopped) return;
    const started = await startControllers(this.context, {
      isEnabled: this.#isEnabled,
      nodes: simulate ? nodes : undefined,
      authority: this.#authority,
      isPart: this.#isPart,
      turn: this.#turn,
    });
    this.#controllers.push(started);
    if (this.#isStopped) started.stop();
  }

  /** Stops all watches and controllers. */
  stop(): void {
    this.#isStopped = true;
    for (const controller of this.#controllers) controller.stop();
    this.context.watches.endAll();
    this.context.webhooks.close();
  }
}
