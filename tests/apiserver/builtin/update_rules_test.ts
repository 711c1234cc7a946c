import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const NAMESPACE = "/api/v1/namespaces/default";
const JOBS = "/apis/batch/v1/namespaces/default/jobs";
const CONTAINERS = [{ name: "c", image: "x" }];
const PORTS = [{ port: 80 }];
const TEMPLATE = { spec: { restartPolicy: "Never", containers: CONTAINERS } };
const BALANCER = { type: "LoadBalancer", ports: PORTS };

const CIDR = 'node updates may not change podCIDR except from "" to valid';

interface Change {
  readonly what: string;
  readonly path: string;
  /** Object without name, followed by the changed fields of its spec. */
  readonly made: Record<string, unknown>;
  readonly spec?: Record<string, unknown>;
  readonly data?: Record<string, unknown>;
  /** Message of Kubernetes 1.37; undefined if the update is allowed. */
  readonly refused?: string;
}

const CHANGES: readonly Change[] = [
  {
    what: "the data of an immutable ConfigMap",
    path: `${NAMESPACE}/configmaps`,
    made: { immutable: true, data: { a: "1" } },
    data: { a: "2" },
    refused: "data: Forbidden: field is immutable when `immutable` is set",
  },
  {
    what: "the data of an immutable Secret",
    path: `${NAMESPACE}/secrets`,
    made: { immutable: true, data: { a: "MQ==" } },
    data: { a: "Mg==" },
    refused: "data: Forbidden: field is immutable when `immutable` is set",
  },
  {
    what: "the deadline of a Pod to a later time",
    path: `${NAMESPACE}/pods`,
    made: { spec: { containers: CONTAINERS, activeDeadlineSeconds: 5 } },
    spec: { activeDeadlineSeconds: 9 },
    refused:
      "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous value",
  },
  {
    what: "the deadline of a Pod to none",
    path: `${NAMESPACE}/pods`,
    made: { spec: { containers: CONTAINERS, activeDeadlineSeconds: 5 } },
    spec: { activeDeadlineSeconds: undefined },
    refused:
      "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
  },
  {
    what: "the deadline of a Pod to an earlier time",
    path: `${NAMESPACE}/pods`,
    made: { spec: { containers: CONTAINERS, activeDeadlineSeconds: 5 } },
    spec: { activeDeadlineSeconds: 4 },
  },
  {
    what: "a toleration of a Pod",
    path: `${NAMESPACE}/pods`,
    made: {
      spec: {
        containers: CONTAINERS,
        tolerations: [{ key: "a", operator: "Exists" }],
      },
    },
    spec: { tolerations: [] },
    refused:
      "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
  },
  {
    what: "the scheduling gates of a Pod by adding one",
    path: `${NAMESPACE}/pods`,
    made: {
      spec: {
        containers: CONTAINERS,
        schedulingGates: [{ name: "example.com/a" }],
      },
    },
    spec: {
      schedulingGates: [{ name: "example.com/a" }, { name: "example.com/b" }],
    },
    refused:
      "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'example.com/b'",
  },
  {
    what: "the address of a Service",
    path: `${NAMESPACE}/services`,
    made: { spec: { clusterIP: "10.96.0.77", ports: PORTS } },
    spec: { clusterIP: "10.96.0.78", clusterIPs: ["10.96.0.78"] },
    refused:
      'spec.clusterIPs[0]: Invalid value: ["10.96.0.78"]: may not change once set',
  },
  {
    what: "the class of a load balancer",
    path: `${NAMESPACE}/services`,
    made: { spec: { ...BALANCER, loadBalancerClass: "example.com/a" } },
    spec: { loadBalancerClass: "example.com/b" },
    refused:
      'spec.loadBalancerClass: Invalid value: "example.com/b": may not change once set',
  },
  {
    what: "the port of health checks of a load balancer",
    path: `${NAMESPACE}/services`,
    made: { spec: { ...BALANCER, externalTrafficPolicy: "Local" } },
    spec: { healthCheckNodePort: 30_999 },
    refused: "spec.healthCheckNodePort: Forbidden: field is immutable",
  },
  {
    what: "the mode of a volume",
    path: "/api/v1/persistentvolumes",
    made: {
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        hostPath: { path: "/x" },
      },
    },
    spec: { volumeMode: "Block" },
    refused: 'volumeMode: Invalid value: "Block": field is immutable',
  },
  {
    what: "the attributes class of a PersistentVolume",
    path: "/api/v1/persistentvolumes",
    made: {
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        csi: { driver: "d", volumeHandle: "v" },
        volumeAttributesClassName: "gold",
      },
    },
    spec: { volumeAttributesClassName: "silver" },
  },
  ...[
    { field: "serviceName", value: "other", isRefused: true },
    { field: "revisionHistoryLimit", value: 3, isRefused: false },
  ].map(({ field, value, isRefused }) => ({
    what: `the ${field} of a StatefulSet`,
    path: "/apis/apps/v1/namespaces/default/statefulsets",
    made: {
      spec: {
        selector: { matchLabels: { app: "a" } },
        template: {
          metadata: { labels: { app: "a" } },
          spec: { containers: CONTAINERS },
        },
      },
    },
    spec: { [field]: value },
    ...(isRefused && {
      refused: `spec.${field}: Invalid value: ${
        JSON.stringify(value)
      }: field is immutable`,
    }),
  })),
  {
    what: "the attachment of a CSIDriver",
    path: "/apis/storage.k8s.io/v1/csidrivers",
    made: { spec: { attachRequired: true } },
    spec: { attachRequired: false },
    refused: "spec.attachedRequired: Invalid value: false: field is immutable",
  },
  {
    what: "the completions of a Job",
    path: JOBS,
    made: { spec: { template: TEMPLATE, completions: 2 } },
    spec: { completions: 3 },
    refused: "spec.completions: Invalid value: 3: field is immutable",
  },
  ...([
    ["ID", { providerID: "c://d" }, "field cannot be modified once set"],
    ["missing ID", { providerID: null }, "field cannot be cleared once set"],
    ["range", { podCIDRs: ["10.0.1.0/24", "fd00::/64"] }, CIDR],
    ["number of ranges", { podCIDRs: ["10.0.0.0/24"] }, CIDR],
    ["external ID", { externalID: "y" }, "may not be updated"],
    ["taints", { taints: [] }, undefined],
  ] as const).map(([what, spec, why]) => ({
    what: `the ${what} of a Node`,
    path: "/api/v1/nodes",
    made: {
      spec: {
        podCIDR: "10.0.0.0/24",
        podCIDRs: ["10.0.0.0/24", "fd00::/64"],
        providerID: "a://b",
        externalID: "x",
      },
    },
    spec,
    ...(why && {
      refused: `spec.${Object.keys(spec)[0]}: ${
        why.startsWith("field") ? "Invalid value: null" : "Forbidden"
      }: ${why}`,
    }),
  })),
  ...[["BestEffort", "Terminating"], ["BestEffort"]].map((scopes, index) => ({
    what: `the ${index === 0 ? "order of " : ""}scopes of a quota`,
    path: `${NAMESPACE}/resourcequotas`,
    made: {
      spec: { hard: { pods: "1" }, scopes: ["Terminating", "BestEffort"] },
    },
    spec: { scopes },
    ...(index > 0 && {
      refused: 'spec.scopes: Invalid value: ["BestEffort"]: field is immutable',
    }),
  })),
  ...[2, 3].map((parallelism) => ({
    what:
      `the completions of an indexed Job, with a parallelism of ${parallelism}`,
    path: JOBS,
    made: {
      spec: {
        template: TEMPLATE,
        completionMode: "Indexed",
        completions: 2,
        parallelism: 2,
      },
    },
    spec: { completions: 3, parallelism },
    ...(parallelism !== 3 && {
      refused:
        "spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism",
    }),
  })),
];

for (const { what, path, made, spec, data, refused } of CHANGES) {
  const outcome = refused === undefined ? "accepted" : "rejected";
  test(`changing ${what} is ${outcome}`, async () => {
    const server = new TestServer({ builtin });
    const { status, body } = await server.send("POST", path, {
      metadata: { name: "a" },
      ...made,
    });
    assert.equal(status, 201, body.message);
    const patch = JSON.stringify(
      { data, spec },
      (name, value) =>
        name !== "data" && name !== "spec" ? value ?? null : value,
    );
    const answer = await server.send("PATCH", `${path}/a`, patch, {
      "content-type": "application/merge-patch+json",
    });
    assert.equal(answer.status, refused === undefined ? 200 : 422);
    if (refused !== undefined) {
      assert.equal(
        answer.body.message.replace(/^.*? is invalid: /, ""),
        refused,
      );
    }
    server.stop();
  });
}

test("the status of a Node has each address once", async () => {
  const server = new TestServer({ builtin });
  await server.send("POST", "/api/v1/nodes", { metadata: { name: "a" } });
  const address = { type: "InternalIP", address: "1.2.3.4" };
  const update = (addresses: readonly object[]) =>
    server.send(
      "PATCH",
      "/api/v1/nodes/a/status",
      JSON.stringify({ status: { addresses } }),
      { "content-type": "application/merge-patch+json" },
    );
  const { body } = await update([address, address]);
  assert.equal(
    body.message,
    'Node "a" is invalid: status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"1.2.3.4"}',
  );
  assert.equal((await update([address])).status, 200);
  server.stop();
});

test("the status of a quota may hold known resources and no negative amounts", async () => {
  const server = new TestServer({ builtin });
  const quotas = `${NAMESPACE}/resourcequotas`;
  const { body } = await server.send("POST", quotas, {
    metadata: { name: "a" },
    spec: { hard: { pods: "1" } },
  });
  const update = (status: unknown) =>
    server.send("PUT", `${quotas}/a/status`, {
      ...body,
      metadata: { name: "a" },
      status,
    });
  const answer = await update({ hard: { foo: "1" }, used: { pods: "-1" } });
  assert.equal(
    answer.body.message,
    'ResourceQuota "a" is invalid: [status.hard[foo]: Invalid value: "foo": must be a standard resource type or fully qualified, status.hard[foo]: Invalid value: "foo": must be a standard resource for quota, status.used[pods]: Invalid value: "-1": must be greater than or equal to 0]',
  );
  assert.equal((await update({ used: { pods: "1" } })).status, 200);
  server.stop();
});
