import type { CrdManifest } from "@coracle/operator/crd";
import type { OperatorService } from "./conversions.ts";
import { operatorLabels, webhookPorts } from "./operator_deployment.ts";
import type { OperatorDescription } from "./operator_description.ts";
import { disruptionBudget } from "./optional_manifests.ts";

/** Kinds of the configurations of webhooks. */
const CONFIGURATIONS = [
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
];

/** Service in front of the webhooks of an operator; undefined if it has none. */
function serviceOf(
  { settings: { webhooks } }: OperatorDescription,
  namespace: string,
): OperatorService | undefined {
  if (webhooks === undefined || "serve" in webhooks) return undefined;
  return webhooks.service && {
    namespace: webhooks.service.namespace ?? namespace,
    name: webhooks.service.name,
    port: webhooks.service.port ?? 443,
  };
}

/** Whether an operator converts the objects of a definition: those of its kinds. */
function converts(
  { controllers }: OperatorDescription,
  { spec, metadata }: CrdManifest,
): boolean {
  return spec.conversion !== undefined &&
    controllers.some(({ kind, secondaryKinds, readOnlyKinds }) =>
      [kind, ...secondaryKinds, ...readOnlyKinds].some((one) =>
        `${one.plural}.${one.group}` === metadata.name
      )
    );
}

/** Service of the operator that converts the objects of a definition. */
export function conversionService(
  definition: CrdManifest,
  { namespace, operators }: {
    readonly namespace: string;
    readonly operators: readonly OperatorDescription[];
  },
): OperatorService | undefined {
  const able = operators.find((operator) =>
    converts(operator, definition) &&
    serviceOf(operator, namespace) !== undefined
  );
  return able && serviceOf(able, namespace);
}

/** Objects of cert-manager: an authority of ten years, and a certificate by it. */
function issuedCertificates(
  { name, service, labels }: {
    readonly name: string;
    readonly service: OperatorService;
    readonly labels: Readonly<Record<string, string>>;
  },
): readonly unknown[] {
  const { namespace } = service;
  const object = (kind: string, name: string, spec: object) => ({
    apiVersion: "cert-manager.io/v1",
    kind,
    metadata: { name, namespace, labels },
    spec,
  });
  const authority = `${name}-ca`;
  return [
    object("Issuer", `${name}-root`, { selfSigned: {} }),
    object("Certificate", authority, {
      isCA: true,
      commonName: name.slice(0, 64),
      secretName: authority,
      duration: "87600h",
      privateKey: { algorithm: "ECDSA" },
      issuerRef: { kind: "Issuer", name: `${name}-root` },
    }),
    object("Issuer", authority, { ca: { secretName: authority } }),
    object("Certificate", name, {
      secretName: name,
      dnsNames: [`${service.name}.${namespace}.svc`],
      privateKey: { algorithm: "ECDSA" },
      usages: ["digital signature", "server auth"],
      issuerRef: { kind: "Issuer", name: authority },
    }),
  ];
}

/**
 * Objects that the webhooks of operators need: a Service in front of the pods, and
 * the configurations. These are empty: the operator fills them in as soon as it can
 * be reached, so that no request fails before that, and they go with the other
 * manifests when the operator is uninstalled.
 */
export function webhookManifests(
  { name, namespace, operators, definitions }: {
    readonly name: string;
    readonly namespace: string;
    readonly operators: readonly OperatorDescription[];
    readonly definitions: readonly CrdManifest[];
  },
): readonly unknown[] {
  const labels = operatorLabels(name);
  const ports = webhookPorts(operators);
  const objects = operators.flatMap((operator) => {
    const { webhooks } = operator.settings;
    const service = serviceOf(operator, namespace);
    if (webhooks === undefined || "serve" in webhooks || !service) return [];
    const { name, namespace: place, port } = service;
    const configured = webhooks.name ?? `${name}.${place}`;
    const issued = webhooks.certificates === "cert-manager"
      ? issuedCertificates({ name: configured, service, labels })
      : [];
    const target = ports.find(({ containerPort }) =>
      containerPort === webhooks.port
    );
    // A first start waits for its own conversion.
    const isEarly = definitions.some((one) => converts(operator, one));
    return [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name, namespace: place, labels },
        spec: {
          selector: labels,
          ports: [{ name: "https", port, targetPort: target?.name }],
          ...isEarly && { publishNotReadyAddresses: true },
        },
      },
      ...issued,
      ...CONFIGURATIONS.map((kind) => ({
        apiVersion: "admissionregistration.k8s.io/v1",
        kind,
        metadata: { name: configured, labels },
      })),
    ];
  });
  return objects.length === 0
    ? []
    : [...objects, disruptionBudget({ name, namespace, ports: [] })];
}
