import type { Admission } from "../admission/admission_options.ts";
import type { Webhooks } from "../admission/webhooks.ts";
import type { Client } from "../client/client.ts";
import { host } from "../client/host.ts";
import { loadModule } from "../clock.ts";
import { namespaceSet } from "../controller/namespaces.ts";
import type { DefinedKind } from "../crd/kind_definition.ts";
import { admissionReader, type ManagedController } from "./controller_start.ts";
import type { OperatorSettings } from "./operator_options.ts";

/** Admission of an operator, with the name of the controller of the short form. */
export interface OperatorAdmission {
  readonly admission: Admission;
  readonly controller: string | undefined;
}

/**
 * Creates the webhooks of the admissions and conversions of an operator; loads
 * their modules.
 *
 * @throws {TypeError} If nothing is served, or API servers cannot reach it.
 */
export async function loadWebhooks(
  { settings, admissions, converted, controllers, client, signal }: {
    readonly settings: OperatorSettings;
    readonly admissions: readonly OperatorAdmission[];
    /** Kinds whose versions the operator converts. */
    readonly converted: readonly DefinedKind[];
    readonly controllers: ReadonlyMap<string, ManagedController>;
    readonly client: Client;
    readonly signal: AbortSignal;
  },
): Promise<Webhooks> {
  const { webhooks: place, logger, namespaces, metrics, clock } = settings;
  const first = admissions[0]?.admission.kind ?? converted[0];
  if (place === undefined || first === undefined) {
    throw new TypeError(
      `Cannot serve webhooks: ${
        first === undefined
          ? "no kind is admitted, so call operator.admit() first"
          : 'the option "webhooks" of the operator must say how API servers reach it, such as { service: { name } }'
      }`,
    );
  }
  const { Webhooks } = await loadModule(import("../admission/webhooks.ts"));
  const suffix = Array.isArray(namespaces) ? `.${namespaces[0]}` : "";
  const webhooks = new Webhooks(place, {
    client,
    clock,
    log: logger,
    metrics,
    signal,
    isDeveloped: host().operators !== undefined,
    fallbackName: `${first.kind.toLowerCase()}${suffix}`,
    reader: admissionReader(() => controllers.values(), client),
  });
  for (const { admission, controller: name } of admissions) {
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
