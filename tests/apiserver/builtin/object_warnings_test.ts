import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiSession, withSession } from "../support/api_session.ts";

const PODS = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";

/** Warnings about an object that is written. */
async function warningsOf(
  session: ApiSession,
  path: string,
  body: unknown,
  patch = false,
): Promise<string[]> {
  const { status, headers, body: answer } = await session.send(
    patch ? "PATCH" : "POST",
    path,
    body,
    patch ? { "content-type": "application/merge-patch+json" } : {},
  );
  assert.ok(status < 300, JSON.stringify(answer));
  const text = headers["warning"] ?? "";
  return [...text.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)]
    .map(([, quoted]) => JSON.parse(`"${quoted}"`));
}

const container = (more: object) => ({ name: "c", image: "i", ...more });
const REPEATED = [{ name: "A", value: "1" }, { name: "A", value: "2" }];
const HIDES =
  'hides previous definition of "A", which may be dropped when using apply';
const FIRST = "spec.containers[0]";
const NO_POD = "labelSelector: a null labelSelector results in matching no pod";

/** Specs of pods with the warnings of a kube-apiserver 1.36. */
const SPECS: readonly (readonly [spec: object, warnings: readonly string[]])[] =
  [
    [{ containers: [container({})] }, []],
    [
      { containers: [container({ env: REPEATED })] },
      [`${FIRST}.env[1]: ${HIDES}`],
    ],
    [
      {
        containers: [container({
          env: [{ name: "A", value: "1" }, { name: "A", value: "$(A):2" }],
        })],
      },
      [],
    ],
    [
      {
        containers: [
          container({
            ports: [
              { containerPort: 80 },
              { containerPort: 80, protocol: "UDP" },
              { containerPort: 80, hostPort: 81 },
              { containerPort: 80, hostPort: 81, hostIP: "1.2.3.4" },
            ],
          }),
          { name: "d", image: "i", ports: [{ containerPort: 80 }] },
        ],
      },
      [
        `${FIRST}.ports[2]: overlapping port definition with ${FIRST}.ports[0]`,
        `${FIRST}.ports[3]: overlapping port definition with ${FIRST}.ports[0]`,
        `${FIRST}.ports[3]: dangerously ambiguous port definition with ${FIRST}.ports[2]`,
        `spec.containers[1].ports[0]: duplicate port definition with ${FIRST}.ports[0]`,
        `spec.containers[1].ports[0]: overlapping port definition with ${FIRST}.ports[2]`,
        `spec.containers[1].ports[0]: overlapping port definition with ${FIRST}.ports[3]`,
      ],
    ],
    [
      {
        containers: [
          container({
            resources: { requests: { memory: "1500m", cpu: "1500m" } },
          }),
        ],
      },
      [
        `${FIRST}.resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer`,
      ],
    ],
    [
      {
        containers: [container({})],
        imagePullSecrets: [{ name: "a" }, { name: "a" }, { name: "" }],
        hostAliases: [{ ip: "1.2.3.4" }, { ip: "1.2.3.4" }],
      },
      [
        'spec.imagePullSecrets[1].name: duplicate name "a"',
        'spec.imagePullSecrets[2].name: invalid empty name ""',
        'spec.hostAliases[1].ip: duplicate ip "1.2.3.4"',
      ],
    ],
    [
      {
        containers: [container({})],
        nodeSelector: { "beta.kubernetes.io/os": "linux" },
        topologySpreadConstraints: [{
          maxSkew: 1,
          topologyKey: "failure-domain.beta.kubernetes.io/zone",
          whenUnsatisfiable: "DoNotSchedule",
        }],
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{
              topologyKey: "k",
            }],
          },
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{
                matchExpressions: [{
                  key: "beta.kubernetes.io/arch",
                  operator: "Exists",
                }],
              }],
            },
          },
        },
      },
      [
        'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
        `spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].${NO_POD}`,
        'spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
        `spec.topologySpreadConstraints[0].${NO_POD}`,
      ],
    ],
    [
      {
        containers: [container({})],
        volumes: [{ name: "v", rbd: { monitors: ["m"], image: "i" } }],
      },
      ["spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+"],
    ],
  ];

test("A new pod is answered with the warnings of kube-apiserver", () =>
  withSession(async (session) => {
    const dryRun = `${PODS}?dryRun=All`;
    for (const [spec, warnings] of SPECS) {
      const pod = { metadata: { name: "p" }, spec };
      assert.deepEqual(await warningsOf(session, dryRun, pod), warnings);
    }
    const dotted = {
      metadata: {
        name: "a.b",
        annotations: { "seccomp.security.alpha.kubernetes.io/pod": "x" },
      },
      spec: { containers: [container({})] },
    };
    assert.deepEqual(await warningsOf(session, dryRun, dotted), [
      'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead',
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ]);
  }));

test("Warnings about a template are repeated when the generation changes", () =>
  withSession(async (session) => {
    const expected = [`spec.template.${FIRST}.env[1]: ${HIDES}`];
    const deployment = {
      metadata: { name: "d" },
      spec: {
        selector: { matchLabels: { a: "b" } },
        template: {
          metadata: { labels: { a: "b" } },
          spec: { containers: [container({ env: REPEATED })] },
        },
      },
    };
    const here = `${DEPLOYMENTS}/d`;
    const patched = (body: unknown) => warningsOf(session, here, body, true);
    assert.deepEqual(
      await warningsOf(session, DEPLOYMENTS, deployment),
      expected,
    );
    assert.deepEqual(await patched({ metadata: { labels: { x: "y" } } }), []);
    assert.deepEqual(await patched({ spec: { paused: true } }), expected);
  }));

test("Services and claims are answered with the warnings of kube-apiserver", () =>
  withSession(async (session) => {
    const service = {
      metadata: { name: "s" },
      spec: {
        clusterIP: "None",
        ports: [{ port: 80 }],
        sessionAffinity: "ClientIP",
      },
    };
    assert.deepEqual(
      await warningsOf(session, "/api/v1/namespaces/default/services", service),
      ["spec.SessionAffinity is ignored for headless services"],
    );
    const storage = "volume.beta.kubernetes.io/storage-class";
    const claim = {
      metadata: { name: "c", annotations: { [storage]: "x" } },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
      },
    };
    assert.deepEqual(
      await warningsOf(
        session,
        "/api/v1/namespaces/default/persistentvolumeclaims",
        claim,
      ),
      [
        `metadata.annotations[${storage}]: deprecated since v1.8; use "storageClassName" attribute instead`,
      ],
    );
  }));
