import { ADMISSION_CASES } from "./admission_requests.ts";
import type { RequestCase, RequestLine } from "./comparison.ts";

const CM = "/api/v1/namespaces/NS/configmaps";
const PODS = "/api/v1/namespaces/NS/pods";
const GROUP = "NS.example.dev";
const WIDGETS = `/apis/${GROUP}/v1/namespaces/NS/widgets`;
const DEFINITIONS =
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

function typed(type: string): { headers: Record<string, string> } {
  return { headers: { "content-type": `application/${type}` } };
}
const MERGE = typed("merge-patch+json");
const JSON_PATCH = typed("json-patch+json");
const APPLY = typed("apply-patch+yaml");

function configMap(name: string, metadata: object = {}): object {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, ...metadata },
    data: { a: "1", b: "2" },
  };
}

function widget(name: string, spec: unknown): object {
  const apiVersion = `${GROUP}/v1`;
  return { apiVersion, kind: "Widget", metadata: { name }, spec };
}

const SPEC = {
  type: "object",
  required: ["size"],
  properties: {
    size: { type: "integer", minimum: 1, maximum: 10, default: 3 },
    mode: { type: "string", enum: ["a", "b"], default: "a" },
    name: { type: "string", pattern: "^[a-z]+$", maxLength: 5 },
    when: { type: "string", format: "date-time" },
    port: { "x-kubernetes-int-or-string": true },
    note: { type: "string", nullable: true },
    tags: {
      type: "array",
      items: { type: "string" },
      "x-kubernetes-list-type": "set",
      maxItems: 3,
    },
    ports: {
      type: "array",
      items: {
        type: "object",
        required: ["name"],
        properties: {
          name: { type: "string" },
          port: { type: "integer", default: 80 },
        },
      },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
    },
    blob: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    limits: { type: "object", additionalProperties: { type: "string" } },
    one: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      oneOf: [{ required: ["a"] }, { required: ["b"] }],
    },
    ratio: { type: "number", multipleOf: 0.5 },
  },
  "x-kubernetes-validations": [
    { rule: "self.size < 9 || self.mode == 'b'", message: "big needs b" },
    {
      rule: "!has(oldSelf.name) || has(self.name)",
      reason: "FieldValueForbidden",
      fieldPath: ".name",
      messageExpression: "'name must stay: ' + oldSelf.name",
    },
  ],
};

function definition(plural: string, versions: readonly unknown[]): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: { plural, kind: "Widget", singular: "widget" },
      versions,
    },
  };
}

function version(spec: unknown, more: object = {}): object {
  return {
    name: "v1",
    served: true,
    storage: true,
    schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
    ...more,
  };
}

const LABELS: readonly string[] = [
  "app=web",
  "app!=web",
  "app in (web,db)",
  "app notin (web),x=y",
  "!app,x=y",
  "app",
  "app=",
  "app in ()",
  "app in (web",
  "=web",
  "app=web,",
  ",",
  "app>1",
  "app=web tier=front",
  "app=-x",
  "x/y/z=1",
  "notin",
];

const FIELDS: readonly string[] = [
  "metadata.name=a",
  "metadata.name==b,metadata.namespace=NS",
  "metadata.namespace=other",
  "spec.nodeName=x",
  "metadata.name",
  "metadata.name=a,",
  "metadata.labels.app=web",
  "=a",
];

const BODIES: readonly unknown[] = [
  "{",
  "[]",
  "null",
  "",
  "{}",
  { kind: "ConfigMap" },
  { apiVersion: "v1", kind: "Pod", metadata: { name: "x" } },
  { apiVersion: "a/b/c", kind: "ConfigMap", metadata: { name: "x" } },
  { apiVersion: "v1", kind: "ConfigMapList", items: [] },
  { metadata: { name: 5 } },
  { metadata: {} },
  { metadata: { name: "UPPER" } },
  { metadata: { name: "a".repeat(254) } },
  { metadata: { name: "x", namespace: "other" } },
  { metadata: { name: "x", labels: { a: 5 } } },
  { metadata: { name: "x", labels: { a: null } } },
  { metadata: { name: "x1" }, data: [] },
  { metadata: { name: "x2" }, data: { a: null } },
  { metadata: { name: "x3" }, data: { "bad key": "a" } },
];

const METADATA: readonly object[] = [
  { finalizers: ["bad finalizer"] },
  { finalizers: ["nodomain"] },
  { finalizers: ["orphan", "foregroundDeletion"] },
  { labels: { "a/b/c": "x y" } },
  { annotations: { "-x": "y" } },
  { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "x" }] },
  { deletionTimestamp: "2020-01-01T00:00:00Z" },
  { creationTimestamp: "2020-01-01T00:00:00Z" },
  { uid: "abc" },
  { deletionGracePeriodSeconds: 5 },
  { generation: 77 },
  { managedFields: [] },
];

const SPECS: readonly unknown[] = [
  {},
  { size: 0 },
  { size: "3" },
  { size: 2.5 },
  { size: null },
  { size: 2, mode: "c" },
  { size: 2, name: "toolong" },
  { size: 2, when: "yesterday" },
  { size: 2, port: true },
  { size: 2, note: null },
  { size: 2, tags: ["x", "x"] },
  { size: 2, tags: ["1", "2", "3", "4"] },
  { size: 2, ports: [{ name: "a" }, { name: "a" }] },
  { size: 2, ports: [{}] },
  { size: 2, ports: [{ name: "a", more: 1 }], unknown: 1 },
  { size: 2, blob: { any: { thing: [1] } } },
  { size: 2, limits: { a: 1 } },
  { size: 2, one: { a: 1, b: 2 } },
  { size: 2, ratio: 0.7 },
  { size: 9 },
  { size: 9, mode: "b" },
];

/** Bodies of requests for a Scale, right and wrong. */
const SCALES: readonly object[] = [
  { spec: "x" },
  { spec: [] },
  { spec: null },
  { spec: { replicas: 3_000_000_000 } },
  { spec: { replicas: -3_000_000_000 } },
  { spec: { replicas: 1.5 } },
  { spec: { replicas: true } },
  { spec: { replicas: null } },
  { spec: { replicas: 2, other: 1 } },
  { metadata: { name: "d", labels: "x" }, spec: { replicas: 1 } },
  { status: 7, spec: { replicas: 1 } },
  { status: { replicas: 3_000_000_000 }, spec: { replicas: 1 } },
  { status: { selector: 7 }, spec: { replicas: 1 } },
];

/** The controller of Deployments writes their status in between. */
const ANY_REVISION = { ignore: ["metadata.resourceVersion"] };

const DEPLOYMENTS = "/apis/apps/v1/namespaces/NS/deployments";
const POD = { containers: [{ name: "c", image: "i" }] };

function owned(name: string, ...owners: readonly object[]): object {
  const ownerReferences = owners.map((owner, index) => ({
    name: "none",
    uid: String(index + 1),
    ...owner,
  }));
  return configMap(name, { ownerReferences });
}

const NO_KIND = { apiVersion: "example.dev/v1", kind: "Nothing" };
const NO_VERSION = { apiVersion: "apps/v1beta1", kind: "Deployment" };
const NO_MAP = { apiVersion: "v1", kind: "ConfigMap" };

/** Requests whose answers must be the same on every server. */
export const CASES: readonly RequestCase[] = [
  {
    name: "selectors",
    requests: [
      [`POST ${CM}`, configMap("a", { labels: { app: "web", x: "y" } })],
      [`POST ${CM}`, configMap("b", { labels: { app: "db", x: "y" } })],
      [`POST ${CM}`, configMap("c", { labels: { x: "y", app: "" } })],
      ...LABELS.map((selector): RequestLine => [
        `GET ${CM}?labelSelector=${encodeURIComponent(selector)}`,
      ]),
      ...FIELDS.map((selector): RequestLine => [
        `GET ${CM}?fieldSelector=${encodeURIComponent(selector)}`,
      ]),
      [`GET ${PODS}?fieldSelector=status.phase%3DPending`],
      [`GET ${PODS}?fieldSelector=spec.hostNetwork%3Dtrue`],
      [`GET ${CM}?limit=x`],
      [`GET ${CM}?watch=maybe`],
      [`GET ${CM}?watch=1&labelSelector=((`],
      [`GET ${CM}?watch=1&sendInitialEvents=true`],
      [`GET ${CM}?resourceVersionMatch=NotOlderThan`],
    ],
  },
  {
    name: "bodies",
    requests: BODIES.flatMap((body): RequestLine[] =>
      ["", "?fieldValidation=Strict"].map((query) => [
        `POST ${CM}${query}`,
        body,
      ])
    ),
  },
  {
    name: "metadata",
    requests: [
      [`POST ${CM}`, configMap("a")],
      ...METADATA.map((metadata): RequestLine => [
        `PATCH ${CM}/a`,
        { metadata },
        MERGE,
      ]),
      [`PATCH ${CM}/a`, { data: { n: 5 } }, MERGE],
      [`PATCH ${CM}/a`, [{ op: "remove", path: "/data/zz" }], JSON_PATCH],
      [`PATCH ${CM}/a`, [{ op: "odd", path: "/data" }], JSON_PATCH],
      [`PATCH ${CM}/a?fieldManager=one`, configMap("a"), APPLY],
      [`PATCH ${CM}/a?fieldManager=two`, {
        ...configMap("a"),
        data: { a: "x" },
      }, APPLY],
      [`PATCH ${CM}/a`, configMap("a"), APPLY],
      [`PATCH ${CM}/a?fieldManager=one`, {
        ...configMap("a"),
        kind: "Secret",
      }, APPLY],
      [`DELETE ${CM}/a?dryRun=All`],
      [`DELETE ${CM}/a?gracePeriodSeconds=x`],
      [`DELETE ${CM}/a`],
      [`DELETE ${CM}/a`],
    ],
  },
  {
    name: "custom",
    definitions: [
      definition("widgets", [
        version(SPEC, {
          subresources: {
            status: {},
            scale: {
              specReplicasPath: ".spec.size",
              statusReplicasPath: ".status.replicas",
            },
          },
        }),
      ]),
    ],
    requests: [
      ...SPECS.map((spec, index): RequestLine => [
        `POST ${WIDGETS}`,
        widget(`w${index}`, spec),
      ]),
      [`POST ${WIDGETS}`, widget("x", { size: 2, name: "abc" })],
      [`PATCH ${WIDGETS}/x`, { spec: { name: null } }, MERGE],
      [`PATCH ${WIDGETS}/x`, { spec: { size: 20, mode: "z" } }, MERGE],
      [`PATCH ${WIDGETS}/x/status`, { status: { replicas: 2 } }, MERGE],
      [`GET ${WIDGETS}/x/scale`],
      [`PATCH ${WIDGETS}/x/scale`, { spec: { replicas: 4 } }, MERGE],
      [`PATCH ${WIDGETS}/x/scale`, { spec: { replicas: 40 } }, MERGE],
      [`PUT ${WIDGETS}/x`, widget("x", { size: 3 })],
      [`GET ${WIDGETS}/x/nonsense`],
      // The type of a patch is checked before its name.
      [`PATCH ${WIDGETS}`, {}, typed("strategic-merge-patch+json")],
      [`PATCH ${WIDGETS}`, {}, MERGE],
      [`DELETE ${WIDGETS}/x`, { preconditions: { uid: "nope" } }],
      [`DELETE ${WIDGETS}/x`],
    ],
  },
  {
    name: "definitions",
    requests: [
      {},
      { spec: {} },
      definition("things", []),
      definition("things", [version({ type: "array" })]),
      definition("things", [version({ type: "string", default: 5 })]),
      definition("things", [version(null)]),
      definition("things", [
        version({
          type: "object",
          "x-kubernetes-validations": [{ rule: "self.nope > 1" }],
        }),
      ]),
    ].map((body): RequestLine => [`POST ${DEFINITIONS}`, body]),
  },
  {
    name: "scales",
    requests: [
      [`POST ${DEPLOYMENTS}`, {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "d" },
        spec: {
          // Only what is asked for below changes it.
          paused: true,
          replicas: 0,
          selector: { matchLabels: { a: "b" } },
          template: { metadata: { labels: { a: "b" } }, spec: POD },
        },
      }, { compare: "none" }],
      ...SCALES.flatMap((scale): RequestLine[] => [
        ...["", "?fieldValidation=Strict"].map((query): RequestLine => [
          `PUT ${DEPLOYMENTS}/d/scale${query}`,
          { metadata: { name: "d" }, ...scale },
          ANY_REVISION,
        ]),
        [`PATCH ${DEPLOYMENTS}/d/scale`, scale, { ...MERGE, ...ANY_REVISION }],
      ]),
    ],
  },
  {
    name: "bindings",
    requests: [
      [`POST ${PODS}`, { metadata: { name: "p" }, spec: POD }, {
        compare: "none",
      }],
      ...[{ uid: "other" }, { resourceVersion: "1" }, {}].map((
        metadata,
      ): RequestLine => [`POST ${PODS}/p/binding`, {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: "p", ...metadata },
        target: { kind: "Node", name: "n" },
      }]),
      // Names that every object of JavaScript has.
      [`POST ${PODS}`, {
        metadata: { name: "q" },
        spec: { ...POD, priorityClassName: "constructor" },
      }],
      ["POST /api/v1/namespaces/NS/serviceaccounts/default/token", {
        spec: {
          boundObjectRef: { apiVersion: "v1", kind: "constructor", name: "p" },
        },
      }],
      // No kubelet ends a pod of a Node that does not exist.
      [`DELETE ${PODS}/p?gracePeriodSeconds=0`, undefined, { compare: "none" }],
    ],
  },
  {
    name: "owners",
    requests: [
      [`POST ${CM}`, owned("kind", NO_KIND)],
      [`POST ${CM}`, owned("version", NO_VERSION)],
      [`POST ${CM}`, owned("mixed", NO_KIND, NO_MAP)],
      [`POST ${CM}`, owned("gone", NO_MAP)],
      {
        id: "collected",
        poll: `${CM}/gone`,
        until: { status: 404 },
        timeoutMs: 30_000,
        compare: "none",
      },
      ...["kind", "version", "mixed"].map((name): RequestLine => [
        `GET ${CM}/${name}`,
      ]),
    ],
  },
  ...ADMISSION_CASES,
];
