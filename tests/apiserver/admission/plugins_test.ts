import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { until } from "../../support/until.ts";
import { TestServer } from "../support/test_server.ts";

const CORE = "/api/v1/namespaces/default";
const PODS = `${CORE}/pods`;

/** Runs a test on a server of the built-in kinds. */
async function withServer(
  work: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = new TestServer({ builtin });
  try {
    await work(server);
  } finally {
    server.stop();
  }
}

function pod(name: string, resources: object = {}, spec: object = {}): object {
  return {
    metadata: { name },
    spec: { containers: [{ name: "c", image: "i", resources }], ...spec },
  };
}

/** Message of a refused create, without the name of the object. */
async function refused(
  server: TestServer,
  path: string,
  body: object,
): Promise<string> {
  const { status, body: answer } = await server.send("POST", path, body);
  assert.equal(status, 403, JSON.stringify(answer));
  return answer.message.replace(/^\S+ "[^"]*" is forbidden: /, "");
}

async function create(
  server: TestServer,
  path: string,
  body: object,
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
): Promise<any> {
  const { status, body: answer } = await server.send("POST", path, body);
  assert.equal(status, 201, JSON.stringify(answer));
  return answer;
}

test("a limit range sets requests and limits, and records them", async () => {
  await withServer(async (server) => {
    await create(server, `${CORE}/limitranges`, {
      metadata: { name: "l" },
      spec: {
        limits: [{
          type: "Container",
          default: { cpu: "300m", memory: "200Mi" },
          defaultRequest: { cpu: "100m" },
        }],
      },
    });
    const { metadata, spec } = await create(server, PODS, {
      ...pod("p", { limits: { memory: "1Gi" } }),
    });
    assert.deepEqual(spec.containers[0].resources, {
      requests: { cpu: "100m", memory: "1Gi" },
      limits: { cpu: "300m", memory: "1Gi" },
    });
    assert.deepEqual(metadata.annotations, {
      "kubernetes.io/limit-ranger":
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c",
    });
  });
});

test("a limit range refuses what is too small, too large or too uneven", async () => {
  await withServer(async (server) => {
    await create(server, `${CORE}/limitranges`, {
      metadata: { name: "l" },
      spec: {
        limits: [
          {
            type: "Container",
            min: { cpu: "50m" },
            max: { cpu: "500m" },
            maxLimitRequestRatio: { cpu: "4" },
          },
          { type: "Pod", max: { memory: "1Gi" } },
          {
            type: "PersistentVolumeClaim",
            min: { storage: "1Gi" },
            max: { storage: "2Gi" },
          },
        ],
      },
    });
    const memory = { memory: "1Gi" };
    const refusal = (requests: object, limits: object) =>
      refused(server, PODS, pod("p", { requests, limits }));
    assert.equal(
      await refusal({ cpu: "10m" }, { cpu: "40m", ...memory }),
      "minimum cpu usage per Container is 50m, but request is 10m",
    );
    assert.equal(
      await refusal({ cpu: "400m" }, { cpu: "1", ...memory }),
      "maximum cpu usage per Container is 500m, but limit is 1",
    );
    assert.equal(
      await refusal({ cpu: "50m" }, { cpu: "450m", memory: "2Gi" }),
      "[cpu max limit to request ratio per Container is 4, but provided ratio is 9.000000, maximum memory usage per Pod is 1Gi, but limit is 2Gi]",
    );
    assert.equal(
      await refusal({ cpu: "100m" }, { cpu: "100m" }),
      "maximum memory usage per Pod is 1Gi.  No limit is specified",
    );
    const claim = (storage: string) => ({
      metadata: { name: storage.toLowerCase() },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage } },
      },
    });
    const claims = `${CORE}/persistentvolumeclaims`;
    assert.equal(
      await refused(server, claims, claim("3Gi")),
      "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi",
    );
    await create(server, claims, claim("1536Mi"));
    await create(
      server,
      PODS,
      pod("p", { limits: { cpu: "100m", ...memory } }),
    );
  });
});

test("a quota counts objects, refuses more, and is replenished", async () => {
  await withServer(async (server) => {
    const quotas = `${CORE}/resourcequotas`;
    await create(server, quotas, {
      metadata: { name: "q" },
      spec: {
        hard: {
          "pods": "1",
          "requests.cpu": "500m",
          "requests.example.com/gpu": "1",
          "count/configmaps": "2",
          "resourcequotas": "1",
        },
      },
    });
    const status = async () =>
      (await server.send("GET", `${quotas}/q`)).body.status;
    assert.deepEqual((await status()).used, {
      "pods": "0",
      "requests.cpu": "0",
      "requests.example.com/gpu": "0",
      "count/configmaps": "1",
      "resourcequotas": "1",
    });
    assert.equal(
      await refused(server, PODS, pod("p")),
      "failed quota: q: must specify requests.cpu for: c",
    );
    assert.equal(
      await refused(server, PODS, pod("p", { requests: { cpu: "600m" } })),
      "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=0, limited: requests.cpu=500m",
    );
    const small = { cpu: "100m", "example.com/gpu": "1" };
    const given = pod("p", { requests: small, limits: small });
    const dry = await server.send("POST", `${PODS}?dryRun=All`, given);
    assert.equal(dry.status, 201);
    await create(server, PODS, given);
    assert.equal(
      await refused(server, PODS, pod("r", { limits: small })),
      "exceeded quota: q, requested: pods=1,requests.example.com/gpu=1, used: pods=1,requests.example.com/gpu=1, limited: pods=1,requests.example.com/gpu=1",
    );
    await server.send("PATCH", `${PODS}/p/status`, {
      status: { phase: "Succeeded" },
    }, { "content-type": "application/merge-patch+json" });
    assert.equal((await status()).used.pods, "0");
    await create(server, PODS, pod("r", { limits: small }));
    await server.send("DELETE", `${PODS}/r`);
    await create(server, `${CORE}/configmaps`, { metadata: { name: "a" } });
    const { used } = await status();
    assert.deepEqual([used.pods, used["count/configmaps"]], ["0", "2"]);
    await server.send("PATCH", `${quotas}/q`, {
      spec: { hard: { pods: "0" } },
    }, { "content-type": "application/merge-patch+json" });
    assert.equal((await status()).hard.pods, "0");
    assert.match(
      await refused(server, PODS, pod("p", { limits: small })),
      /^exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0$/,
    );
  });
});

test("a quota gets all back of a pod that outlived its grace period", async () => {
  const clock = new VirtualClock();
  const server = new TestServer({ builtin, clock });
  await create(server, `${CORE}/resourcequotas`, {
    metadata: { name: "q" },
    spec: { hard: { pods: "1" } },
  });
  await clock.advance(1_000);
  await create(server, PODS, pod("p", {}, { nodeName: "none" }));
  await server.send("DELETE", `${PODS}/p`);
  await clock.advance(300_000);
  await server.send("DELETE", `${PODS}/p?gracePeriodSeconds=0`);
  assert.equal((await server.send("GET", `${PODS}/p`)).status, 404);
  await create(server, PODS, pod("r"));
  server.stop();
});

test("a quota status that a client wrote is corrected in five minutes", async () => {
  const clock = new VirtualClock();
  const server = new TestServer({ builtin, clock });
  const quota = `${CORE}/resourcequotas/q`;
  await create(server, `${CORE}/resourcequotas`, {
    metadata: { name: "q" },
    spec: { hard: { pods: "1" } },
  });
  const hard = async () =>
    (await server.send("GET", quota)).body.status.hard.pods;
  await until("the status is written", async () => await hard() === "1");
  await server.send("PATCH", `${quota}/status`, {
    status: { hard: { pods: "2" } },
  }, { "content-type": "application/merge-patch+json" });
  await clock.advance(299_000);
  assert.equal(await hard(), "2");
  await clock.advance(1_000);
  await until("the status is corrected", async () => await hard() === "1");
  server.stop();
});

test("a quota counts claims of the classes that they have and ask for", async () => {
  await withServer(async (server) => {
    const quota = (name: string) =>
      create(server, `${CORE}/resourcequotas`, {
        metadata: { name },
        spec: {
          hard: { persistentvolumeclaims: "1" },
          scopeSelector: {
            matchExpressions: [{
              scopeName: "VolumeAttributesClass",
              operator: "In",
              values: [name],
            }],
          },
        },
      });
    await quota("gold");
    await quota("silver");
    const claims = `${CORE}/persistentvolumeclaims`;
    const claim = (name: string) => ({
      metadata: { name },
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "",
        volumeAttributesClassName: "gold",
        resources: { requests: { storage: "1Gi" } },
      },
    });
    await create(server, claims, claim("a"));
    assert.match(await refused(server, claims, claim("b")), /^exceeded quota/);
    const used = async (name: string) =>
      (await server.send("GET", `${CORE}/resourcequotas/${name}`)).body.status
        .used.persistentvolumeclaims;
    assert.deepEqual([await used("gold"), await used("silver")], ["1", "0"]);
    await server.send("PATCH", `${claims}/a/status`, {
      status: { currentVolumeAttributesClassName: "silver" },
    }, { "content-type": "application/merge-patch+json" });
    assert.deepEqual([await used("gold"), await used("silver")], ["1", "1"]);
  });
});

test("a quota counts the devices that a claim may get, by class", async () => {
  await withServer(async (server) => {
    const gold = "gold.deviceclass.resource.k8s.io/devices";
    const silver = "silver.deviceclass.resource.k8s.io/devices";
    await create(server, `${CORE}/resourcequotas`, {
      metadata: { name: "q" },
      spec: { hard: { [gold]: "9", [silver]: "99" } },
    });
    const claim = await create(
      server,
      "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
      {
        metadata: { name: "a" },
        spec: {
          devices: {
            requests: [
              { name: "one", exactly: { deviceClassName: "gold" } },
              {
                name: "many",
                firstAvailable: [
                  { name: "x", deviceClassName: "gold", count: 2 },
                  { name: "y", deviceClassName: "gold", count: 3 },
                  {
                    name: "z",
                    deviceClassName: "silver",
                    allocationMode: "All",
                  },
                ],
              },
            ],
          },
        },
      },
    );
    const [{ exactly }] = claim.spec.devices.requests;
    assert.deepEqual(exactly, {
      deviceClassName: "gold",
      allocationMode: "ExactCount",
      count: 1,
    });
    const { status } = (await server.send("GET", `${CORE}/resourcequotas/q`))
      .body;
    assert.deepEqual(status.used, { [gold]: "4", [silver]: "32" });
  });
});

test("a quota with scopes counts the pods in its scopes", async () => {
  await withServer(async (server) => {
    await create(server, `${CORE}/resourcequotas`, {
      metadata: { name: "q" },
      spec: { hard: { pods: "0" }, scopes: ["BestEffort", "NotTerminating"] },
    });
    await create(server, PODS, pod("a", { requests: { cpu: "1" } }));
    await create(server, PODS, pod("b", {}, { activeDeadlineSeconds: 5 }));
    assert.match(await refused(server, PODS, pod("c")), /^exceeded quota: q,/);
  });
});

test("a pod has the account, the token volume and the priority of its cluster", async () => {
  await withServer(async (server) => {
    assert.equal(
      await refused(server, PODS, pod("p", {}, { serviceAccountName: "x" })),
      'error looking up service account default/x: serviceaccount "x" not found',
    );
    assert.equal(
      await refused(server, PODS, pod("p", {}, { priority: 3 })),
      "the integer value of priority (3) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name",
    );
    await server.send("PATCH", `${CORE}/serviceaccounts/default`, {
      imagePullSecrets: [{ name: "pull" }],
    }, { "content-type": "application/merge-patch+json" });
    const classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    const important = { value: 9, globalDefault: true };
    await create(server, classes, { metadata: { name: "i" }, ...important });
    assert.equal(
      await refused(server, classes, { metadata: { name: "j" }, ...important }),
      "PriorityClass i is already marked as default. Only one default can exist",
    );
    const { spec } = await create(server, PODS, pod("p"));
    assert.deepEqual([spec.priority, spec.priorityClassName], [9, "i"]);
    assert.deepEqual(spec.imagePullSecrets, [{ name: "pull" }]);
    assert.match(spec.volumes[0].name, /^kube-api-access-\w{5}$/);
    assert.equal(
      spec.containers[0].volumeMounts[0].name,
      spec.volumes[0].name,
    );
  });
});

test("the labels of a namespace enforce and warn about pod security", async () => {
  await withServer(async (server) => {
    const label = async (mode: string, level: string, query = "") => {
      const labels = { [`pod-security.kubernetes.io/${mode}`]: level };
      return await server.send(
        "PATCH",
        `/api/v1/namespaces/default${query}`,
        { metadata: { labels } },
        { "content-type": "application/merge-patch+json" },
      );
    };
    const wrong = await label("enforce", "strict");
    assert.equal(wrong.status, 422);
    assert.match(
      wrong.body.message,
      /labels\[pod-security\.kubernetes\.io\/enforce\]: Invalid value: "strict": must be one of privileged, baseline, restricted$/,
    );
    const host = { hostNetwork: true };
    await create(server, PODS, pod("old", {}, host));
    assert.equal(
      (await label("enforce", "baseline")).headers.warning,
      [
        '299 - "existing pods in namespace \\"default\\" violate the new PodSecurity enforce level \\"baseline:latest\\""',
        '299 - "old: host namespaces"',
      ].join(", "),
    );
    assert.equal(
      await refused(server, PODS, {
        metadata: { name: "p" },
        spec: {
          ...host,
          containers: [{
            name: "c",
            image: "i",
            securityContext: {
              privileged: true,
              appArmorProfile: { type: "Unconfined" },
            },
            livenessProbe: { httpGet: { port: 1, host: "h" } },
          }],
          volumes: [{ name: "v", hostPath: { path: "/" } }],
        },
      }),
      'violates PodSecurity "baseline:latest": forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined"), host namespaces (hostNetwork=true), hostPath volumes (volume "v"), probe or lifecycle host (container "c" uses probe or lifecycle host "h"), privileged (container "c" must not set securityContext.privileged=true)',
    );
    await create(server, PODS, pod("fine"));
    await label("warn", "restricted");
    const { status, headers } = await server.send("POST", PODS, pod("warned"));
    assert.equal(status, 201);
    assert.match(
      String(headers.warning),
      /would violate PodSecurity .*restricted:latest.*: allowPrivilegeEscalation != false/,
    );
    await label("enforce", "privileged");
    await label("warn-version", "v1.7");
    await create(server, PODS, pod("free", {}, host));
  });
});

test("a runtime class sets overhead and scheduling, and refuses others", async () => {
  await withServer(async (server) => {
    const runtimeClassName = "r";
    await create(server, "/apis/node.k8s.io/v1/runtimeclasses", {
      metadata: { name: runtimeClassName },
      handler: "h",
      overhead: { podFixed: { cpu: "100m" } },
      scheduling: {
        nodeSelector: { a: "b" },
        tolerations: [{ key: "k", operator: "Exists" }],
      },
    });
    const refusal = (spec: object) => refused(server, PODS, pod("p", {}, spec));
    assert.equal(
      await refusal({ runtimeClassName: "nope" }),
      'pod rejected: RuntimeClass "nope" not found',
    );
    assert.equal(
      await refusal({ overhead: { cpu: "1" } }),
      "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    );
    assert.equal(
      await refusal({ runtimeClassName, overhead: { cpu: "1" } }),
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    );
    assert.equal(
      await refusal({ runtimeClassName, nodeSelector: { a: "c" } }),
      "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
    );
    const { spec } = await create(
      server,
      PODS,
      pod("p", {}, {
        runtimeClassName,
        tolerations: [{ key: "k", operator: "Equal", value: "v" }],
      }),
    );
    assert.deepEqual(spec.overhead, { cpu: "100m" });
    assert.deepEqual(spec.nodeSelector, { a: "b" });
    assert.deepEqual(spec.tolerations.at(-1), { key: "k", operator: "Exists" });
    assert.equal(spec.tolerations.length, 3);
  });
});

test("a claim grows if it is bound and its class allows it", async () => {
  await withServer(async (server) => {
    const merge = { "content-type": "application/merge-patch+json" };
    const classes = "/apis/storage.k8s.io/v1/storageclasses";
    await create(server, classes, {
      metadata: {
        name: "s",
        annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
      },
      provisioner: "p",
    });
    const path = `${CORE}/persistentvolumeclaims`;
    const requests = (storage: string) => ({
      resources: { requests: { storage } },
    });
    const { spec, metadata } = await create(server, path, {
      metadata: { name: "c" },
      spec: { accessModes: ["ReadWriteOnce"], ...requests("1Gi") },
    });
    assert.equal(spec.storageClassName, "s");
    assert.deepEqual(metadata.finalizers, ["kubernetes.io/pvc-protection"]);
    const grow = async () =>
      await server.send("PATCH", `${path}/c`, { spec: requests("2Gi") }, merge);
    assert.equal((await grow()).status, 422);
    const status = { phase: "Bound" };
    await server.send("PATCH", `${path}/c/status`, { status }, merge);
    assert.match((await grow()).body.message, /must support resize$/);
    const allowed = { allowVolumeExpansion: true };
    await server.send("PATCH", `${classes}/s`, allowed, merge);
    assert.equal((await grow()).status, 200);
  });
});

/** Certificate request in PEM of a subject, in base64. */
const CSR = {
  masters:
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaE1JR0hBZ0VBTUNVeEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWEp6TVFvd0NBWURWUVFEREFGNApNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVEV0NVZzdHbWEwVzc3TVlHdUprbVlpbzg2OG5nCjhnWGlDRjRCckFxSHhiWG16di9iSjBKbkM3R2lqS0FiZ3lsdWc3eDlaV1g1ZUE3RUFuRzFiczJWb3FBQU1Bb0cKQ0NxR1NNNDlCQU1DQTBrQU1FWUNJUUQ3bXlHSVpvSzlkR0Jab3E3Ymw5QmZaaUgvYk5JNWZhMHo4M2Vkak0zMQpKUUloQUl4NjdCVnFXVjBGQlJ0dTdOK2J6ZzdaZmhEbkFsY3lhL2d3eEJCdlcvZE8KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==",
  other:
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1INENBUUF3SERFT01Bd0dBMVVFQ2d3RmIzUm9aWEl4Q2pBSUJnTlZCQU1NQVhnd1dUQVRCZ2NxaGtqTwpQUUlCQmdncWhrak9QUU1CQndOQ0FBUU5ZSlNEc2FaclJidnN4Z2E0bVNaaUtqenJ5ZUR5QmVJSVhnR3NDb2ZGCnRlYk8vOXNuUW1jTHNhS01vQnVES1c2RHZIMWxaZmw0RHNRQ2NiVnV6Wldpb0FBd0NnWUlLb1pJemowRUF3SUQKU1FBd1JnSWhBTDgrc3ZOdFlUbTI2QlppWTdKZmVrV3BBK0srK0krWXNFRWYwNXg4WG82d0FpRUF0WE9hK1NXVApTZDJ1NkF2SkRPMTBXb0gxV29nUUVPZVJ2aUVMRC9MOEltRT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==",
};

test("a certificate needs a right to its signer, and never makes a master", async () => {
  await withServer(async (server) => {
    const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    const csr = (name: string, request: string) => ({
      metadata: { name },
      spec: {
        request,
        signerName: "kubernetes.io/kube-apiserver-client",
        usages: ["client auth"],
      },
    });
    assert.equal(
      await refused(server, path, csr("m", CSR.masters)),
      "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
    );
    await create(server, path, csr("c", CSR.other));
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const rule = { apiGroups: ["certificates.k8s.io"] };
    const grant = async (name: string, rules: object[]) => {
      await create(server, `${rbac}/clusterroles`, {
        metadata: { name },
        rules,
      });
      await create(server, `${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: {
          apiGroup: "rbac.authorization.k8s.io",
          kind: "ClusterRole",
          name,
        },
        subjects: [{ kind: "User", name: "ann" }],
      });
    };
    await grant("writer", [{
      ...rule,
      resources: ["approval", "status"].map((name) =>
        `certificatesigningrequests/${name}`
      ),
      verbs: ["patch"],
    }]);
    const approve = async (subresource: string, type: string) =>
      await server.send("PATCH", `${path}/c/${subresource}`, {
        status: { conditions: [{ type, status: "True", reason: "r" }] },
      }, {
        "content-type": "application/merge-patch+json",
        "impersonate-user": "ann",
      });
    const early = await approve("approval", "Approved");
    assert.match(
      early.body.message,
      /user not permitted to approve requests with signerName "kubernetes.io\/kube-apiserver-client"$/,
    );
    const sign = await approve("status", "Failed");
    assert.match(sign.body.message, /not permitted to sign requests/);
    await grant("signer", [{
      ...rule,
      resources: ["signers"],
      resourceNames: ["kubernetes.io/*"],
      verbs: ["approve"],
    }]);
    assert.equal((await approve("approval", "Approved")).status, 200);
  });
});

test("a pod takes over the topology of its node, bound or created there", async () => {
  await withServer(async (server) => {
    const topology = {
      "topology.kubernetes.io/zone": "a1",
      "topology.kubernetes.io/region": "a",
    };
    await create(server, "/api/v1/nodes", {
      metadata: { name: "n", labels: { ...topology, other: "" } },
    });
    await create(server, PODS, pod("bound"));
    await create(server, `${PODS}/bound/binding`, {
      metadata: { name: "bound" },
      target: { kind: "Node", name: "n" },
    });
    const bound = await server.send("GET", `${PODS}/bound`);
    assert.deepEqual(bound.body.metadata.labels, topology);
    const made = await create(server, PODS, pod("made", {}, { nodeName: "n" }));
    assert.deepEqual(made.metadata.labels, topology);
    const other = await create(server, PODS, pod("o", {}, { nodeName: "m" }));
    assert.equal(other.metadata.labels, undefined);
    await create(
      server,
      PODS,
      pod("g", {}, { schedulingGates: [{ name: "a/b" }] }),
    );
    const gated = await server.send("POST", `${PODS}/g/binding`, {
      metadata: { name: "g" },
      target: { kind: "Node", name: "n" },
    });
    assert.equal(gated.status, 409);
    assert.match(gated.body.message, /non-empty \.spec\.schedulingGates/);
  });
});

test("ApiServer refuses to disable an admission plug-in that does not exist", async () => {
  await assert.rejects(
    ApiServer.start({ port: false, disabledAdmission: ["ServiceAcount"] }),
    {
      name: "RangeError",
      message:
        /"disabledAdmission" must be among NamespaceLifecycle, .*ServiceAccount, .*: received "ServiceAcount"$/,
    },
  );
});
