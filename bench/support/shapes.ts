/**
 * Objects of shapes that others have published memory figures for: those that
 * cert-manager keeps for a certificate, and a CloneSet of OpenKruise. Keys,
 * certificates, digests, names and times differ, as in a cluster, or compression
 * would look too good.
 *
 * @module
 */
import type { ResolvedKind } from "../../core/api/kind.ts";
import { Random } from "./random.ts";

const BASE64 =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX = "0123456789abcdef";
/** Objects of one team have a namespace. */
const PER_NAMESPACE = 200;

/** Objects of a kind, by number. */
export interface Shape {
  readonly kind: ResolvedKind;
  text(number: number): string;
}

/** Fields that each object has. */
function metadata(number: number, own: Random, manager: string) {
  const id = (length: number) => own.text(HEX, length);
  const time = new Date(1.78e12 + number * 1009).toISOString();
  return {
    name: `app-${number.toString(36)}`,
    namespace: `team-${Math.floor(number / PER_NAMESPACE)}`,
    uid: `${id(8)}-${id(4)}-4${id(3)}-a${id(3)}-${id(12)}`,
    resourceVersion: String(number + 1),
    generation: 1,
    creationTimestamp: time.replace(/\.\d+Z/, "Z"),
    labels: {
      "app.kubernetes.io/name": `app-${number.toString(36)}`,
      "app.kubernetes.io/managed-by": "Helm",
    },
    managedFields: [{
      manager,
      operation: "Update",
      apiVersion: "v1",
      time: time.replace(/\.\d+Z/, "Z"),
      fieldsType: "FieldsV1",
      fieldsV1: {
        "f:metadata": {
          "f:labels": { ".": {}, "f:app.kubernetes.io/name": {} },
        },
        "f:spec": { ".": {}, "f:secretName": {}, "f:issuerRef": { ".": {} } },
        "f:status": { ".": {}, "f:conditions": {}, "f:observedGeneration": {} },
      },
    }],
  };
}

/** Shape of a kind, whose objects have these fields besides their metadata. */
function shape(
  kind: ResolvedKind,
  fields: (number: number, own: Random) => object,
  manager = "cert-manager",
): Shape {
  const { group, version } = kind;
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return {
    kind,
    text(number) {
      const own = new Random(0x5eed ^ Math.imul(number, 2654435761));
      return JSON.stringify({
        ...{ apiVersion, kind: kind.kind },
        metadata: metadata(number, own, manager),
        ...fields(number, own),
      });
    },
  };
}

const namespaced = (
  group: string,
  version: string,
  kind: string,
): ResolvedKind => ({
  ...{ group, version, kind },
  plural: `${kind.toLowerCase()}s`,
  scope: "Namespaced",
});

const ready = (reason: string) => [{
  type: "Ready",
  status: "True",
  observedGeneration: 1,
  lastTransitionTime: "2026-06-01T08:00:00Z",
  reason,
  message: "Certificate is up to date and has not expired",
}];
const issuerRef = {
  group: "cert-manager.io",
  kind: "ClusterIssuer",
  name: "ca",
};

const certificate = shape(
  namespaced("cert-manager.io", "v1", "Certificate"),
  (number) => ({
    spec: {
      secretName: `app-${number.toString(36)}`,
      dnsNames: [`app-${number.toString(36)}.example.com`],
      issuerRef,
      privateKey: { algorithm: "RSA", size: 2048, rotationPolicy: "Always" },
      usages: ["digital signature", "key encipherment"],
    },
    status: {
      conditions: ready("Ready"),
      notAfter: "2026-09-01T08:00:00Z",
      notBefore: "2026-06-01T08:00:00Z",
      renewalTime: "2026-08-01T08:00:00Z",
      revision: 1,
    },
  }),
);

const request = shape(
  namespaced("cert-manager.io", "v1", "CertificateRequest"),
  (_, own) => ({
    spec: {
      request: own.text(BASE64, 1_300),
      issuerRef,
      usages: ["digital signature", "key encipherment"],
      username: "system:serviceaccount:cert-manager:cert-manager",
    },
    status: {
      certificate: own.text(BASE64, 1_500),
      conditions: ready("Issued"),
    },
  }),
);

const secret = shape(namespaced("", "v1", "Secret"), (_, own) => ({
  type: "kubernetes.io/tls",
  data: {
    "ca.crt": "Q0E".repeat(400),
    "tls.crt": own.text(BASE64, 1_500),
    "tls.key": own.text(BASE64, 2_270),
  },
}));

const CONTAINER = {
  imagePullPolicy: "IfNotPresent",
  ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
  resources: {
    limits: { cpu: "1", memory: "1Gi" },
    requests: { cpu: "100m", memory: "256Mi" },
  },
  readinessProbe: {
    httpGet: { path: "/readyz", port: 8080, scheme: "HTTP" },
    periodSeconds: 10,
    failureThreshold: 3,
  },
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
};

const cloneSet = shape(
  namespaced("apps.kruise.io", "v1alpha1", "CloneSet"),
  (number, own) => {
    const app = `app-${number.toString(36)}`;
    const revision = `${app}-${own.text(HEX, 10)}`;
    return {
      spec: {
        replicas: 3,
        revisionHistoryLimit: 10,
        scaleStrategy: {},
        selector: { matchLabels: { app } },
        updateStrategy: {
          type: "InPlaceIfPossible",
          maxSurge: 0,
          maxUnavailable: "20%",
          partition: 0,
        },
        template: {
          metadata: { labels: { app }, creationTimestamp: null },
          spec: {
            containers: ["main", "proxy", "log-agent"].map((name) => ({
              ...{ name, ...CONTAINER },
              image: `registry.example.com/${app}/${name}@sha256:${
                own.text(HEX, 64)
              }`,
              env: Array.from({ length: 12 }, (_, at) => ({
                name: `SETTING_${at}`,
                value: `${app}-${own.text(HEX, 16)}`,
              })),
            })),
            dnsPolicy: "ClusterFirst",
            restartPolicy: "Always",
            schedulerName: "default-scheduler",
            serviceAccountName: app,
            terminationGracePeriodSeconds: 30,
          },
        },
      },
      status: {
        replicas: 3,
        readyReplicas: 3,
        availableReplicas: 3,
        updatedReplicas: 3,
        updatedReadyReplicas: 3,
        currentRevision: revision,
        updateRevision: revision,
        labelSelector: `app=${app}`,
        observedGeneration: 1,
        conditions: [],
      },
    };
  },
  "kruise-manager",
);

/** Shapes of a bench, by its name. */
export const SHAPES: Readonly<
  Record<"certificates" | "clonesets", readonly Shape[]>
> = {
  certificates: [certificate, request, secret],
  clonesets: [cloneSet],
};
