/**
 * Admission and conversion of an operator: what it admits, and the webhooks that
 * serve it while the operator runs.
 *
 * @module
 */
import {
  type Admission,
  type AdmissionHandlers,
  admissionOf,
  type AdmissionOptions,
  policyAdmission,
} from "../admission/admission_options.ts";
import {
  admissionRules,
  definitionRules,
} from "../admission/admission_rules.ts";
import type { WebhookHealth, Webhooks } from "../admission/webhooks.ts";
import type { AdmissionRule } from "../api/admission_rule.ts";
import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import { host } from "../client/host.ts";
import type { WebhookClientConfig } from "../client/webhook_host.ts";
import { loadModule } from "../clock.ts";
import type { Controller } from "../controller/controller.ts";
import { namespaceSet } from "../controller/namespaces.ts";
import { type DefinedKind, isDefinedKind } from "../crd/kind_definition.ts";
import type { AdmissionPolicy } from "../crd/policies.ts";
import { abortable } from "../signals.ts";
import { admissionReader, type ManagedController } from "./controller_start.ts";
import type { OperatorSettings } from "./operator_options.ts";

/** What {@linkcode OperatorAdmission} depends on. */
interface OperatorAdmissionDeps {
  readonly settings: OperatorSettings;
  /** Controllers of the operator, by name. */
  readonly controllers: ReadonlyMap<string, ManagedController>;
}

/** Admission and conversion of an operator. */
export class OperatorAdmission {
  readonly #deps: OperatorAdmissionDeps;
  /** Admissions, with the name of the controller of the short form. */
  readonly #admissions: {
    readonly admission: Admission;
    readonly controller: string | undefined;
  }[] = [];
  #webhooks: Webhooks | undefined;

  /** Creates the admission of an operator that admits nothing yet. */
  constructor(deps: OperatorAdmissionDeps) {
    this.#deps = deps;
  }

  /** Adds an admission; that of a controller ends with it. */
  add(admission: Admission, controller?: string): void {
    this.#admissions.push({ admission, controller });
  }

  /** Adds what `operator.admit` was given: a kind or a policy, with its handlers. */
  admit<O extends KubernetesObject>(
    subject: Kind<O> | AdmissionPolicy<O>,
    handlers: AdmissionHandlers<O>,
    options: AdmissionOptions | undefined,
  ): void {
    this.add(
      "binding" in Object(subject)
        ? policyAdmission(
          subject as AdmissionPolicy,
          handlers as unknown as AdmissionHandlers,
        )
        : admissionOf(
          subject as Kind<O>,
          handlers,
          options as AdmissionOptions,
        ),
    );
  }

  /**
   * Adds the admission of a controller, if it has one.
   *
   * @throws {Error} If the operator is started.
   */
  addOf<P extends KubernetesObject>(
    { kind, name, settings }: Pick<Controller<P>, "kind" | "name" | "settings">,
    { isStarted }: { readonly isStarted: boolean },
  ): void {
    const { admission } = settings;
    if (admission === undefined) return;
    if (isStarted) {
      throw new Error(
        `Cannot register controller "${name}": the operator is started, and "admission" is served from its start only`,
      );
    }
    const { validate, default: fill, ...options } = admission;
    const handlers = {
      ...(validate && { validate: validate.bind(admission) }),
      ...(fill && { default: fill.bind(admission) }),
    };
    this.add(admissionOf(kind, handlers, options), name);
  }

  /** Number of admissions. */
  get count(): number {
    return this.#admissions.length;
  }

  /** Policies that the operator applies. */
  get policies(): readonly AdmissionPolicy[] {
    return this.#admissions.map(({ admission }) => admission.policy)
      .filter((policy) => policy !== undefined);
  }

  /** Whether the API server calls the operator, for a handler or a conversion. */
  get isServed(): boolean {
    return this.#admissions.some(({ admission }) =>
      Object.keys(admission.handlers).length > 0
    ) ||
      this.#deps.settings.webhooks !== undefined && this.#converted.length > 0;
  }

  /** Where each rule is enforced. */
  rules(): readonly AdmissionRule[] {
    const kinds = [
      ...this.#watchedKinds,
      ...this.#admissions.map(({ admission }) => admission.kind),
    ];
    const webhooks = this.#webhooks;
    const isKnown = webhooks?.health().registered;
    return [
      ...[...new Set(kinds)].flatMap((kind) =>
        isDefinedKind(kind) ? definitionRules(kind as DefinedKind) : []
      ),
      ...this.#admissions.flatMap(({ admission }) =>
        admissionRules(
          admission,
          isKnown ? webhooks?.isInForce(admission) : undefined,
        )
      ),
    ];
  }

  /** Health of the webhooks; undefined while there are none. */
  health(): WebhookHealth | undefined {
    return this.#webhooks?.health();
  }

  /** Place where API servers call the operator for conversions. */
  get conversion(): WebhookClientConfig | undefined {
    return this.#webhooks?.conversion;
  }

  /**
   * Serves what there is to serve, and registers conversions before informers list:
   * objects that are stored in another version cannot be read without them.
   */
  async open(client: Client, signal: AbortSignal): Promise<void> {
    const { logger, webhooks: place } = this.#deps.settings;
    const converted = place === undefined ? [] : this.#converted;
    if (this.count === 0 && converted.length === 0) return;
    const webhooks = this.#webhooks = await abortable(
      this.#load(client, signal),
      signal,
    );
    webhooks.convert(converted);
    await webhooks.open();
    await webhooks.registerConversions().catch((error: unknown) =>
      logger.warn("Cannot register the conversions yet, which is tried again", {
        error,
      })
    );
    if (converted.length > 0) {
      const { conversion } = webhooks;
      await host().operators?.converting?.(converted, conversion);
    }
  }

  /** Tells the API server of webhooks and policies. */
  async register(): Promise<void> {
    await this.#webhooks?.register();
  }

  /** Deletes webhooks and policies from the cluster. */
  async remove(client: Client, signal: AbortSignal): Promise<void> {
    const webhooks = this.#webhooks ?? await this.#load(client, signal);
    await webhooks.remove();
  }

  /** Goes on to serve until API servers have moved to other replicas. */
  async leave(limit: number, hurry: AbortSignal): Promise<void> {
    await this.#webhooks?.leave(limit, hurry);
  }

  /**
   * Stops serving.
   *
   * @param taken Names of the policies of the process that has taken over, if any.
   */
  async close(taken?: readonly string[]): Promise<void> {
    await this.#webhooks?.close(taken);
    this.#webhooks = undefined;
  }

  get #watchedKinds() {
    return [...this.#deps.controllers.values()]
      .flatMap(({ isRemote, watchedKinds }) => isRemote ? [] : watchedKinds);
  }

  /** Kinds whose versions this operator converts. */
  get #converted(): readonly DefinedKind[] {
    return [...new Set(this.#watchedKinds)].filter((kind) =>
      isDefinedKind(kind) && kind.conversion !== undefined
    ) as DefinedKind[];
  }

  /** Creates the webhooks of the admissions; loads their modules. */
  async #load(client: Client, signal: AbortSignal): Promise<Webhooks> {
    const { settings, controllers } = this.#deps;
    const { webhooks: place, logger, namespaces, metrics, clock } = settings;
    const first = this.#admissions[0]?.admission.kind ?? this.#converted[0];
    if (first === undefined) {
      throw new TypeError(
        "Cannot serve webhooks: no kind is admitted, so call operator.admit() first",
      );
    }
    if (place === undefined && this.isServed) {
      throw new TypeError(
        'Cannot serve webhooks: the option "webhooks" of the operator must say how API servers reach it, such as { service: { name } }',
      );
    }
    const { Webhooks } = await loadModule(import("../admission/webhooks.ts"));
    const suffix = Array.isArray(namespaces) ? `.${namespaces[0]}` : "";
    const webhooks = new Webhooks(this.isServed ? place : undefined, {
      client,
      clock,
      log: logger,
      metrics,
      signal,
      isDeveloped: host().operators !== undefined,
      fallbackName: `${first.kind.toLowerCase()}${suffix}`,
      reader: admissionReader(() => controllers.values(), client),
    });
    for (const { admission, controller: name } of this.#admissions) {
      const controller = () => controllers.get(name ?? "");
      webhooks.add({
        admission,
        namespaces: () =>
          namespaceSet(
            controller()?.namespaces ?? namespaces,
            client.namespace,
            admission.kind,
          ),
        isActive: () => name === undefined || controller() !== undefined,
      });
    }
    return webhooks;
  }
}
