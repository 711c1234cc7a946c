import {
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
} from "@coracle/operator/kinds";
import {
  type MatcherCase,
  testMatcher,
  WEB,
  workload,
} from "./matcher_case.ts";

const claims = (...claims: readonly object[]) =>
  workload({}, { serviceName: "a", volumeClaimTemplates: claims });
const claim = (spec: object = {}, more: object = {}) => ({
  metadata: { name: "data" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    ...spec,
  },
  ...more,
});
const resources = (
  requests: object,
  limits: object = { cpu: "4" },
) => workload({ resources: { requests, limits } });
const env = (...values: readonly (readonly [string, string?])[]) =>
  workload({
    env: values.map(([name, value]) =>
      value === undefined ? { name } : { name, value }
    ),
  });

testMatcher({
  "claim templates": {
    of: "testSanitizeState_statefulSetWithVolumeClaims",
    kind: StatefulSet,
    applied: claims(claim()),
  },
  "claim templates with the status that they get": {
    of: "testSanitizeState_statefulSetWithVolumeClaims",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({}, { status: { phase: "Pending" } })),
  },
  "claim templates with the volume mode that they get": {
    of: "testSanitizeState_statefulSetWithVolumeClaims",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({ volumeMode: "Filesystem" })),
  },
  "a claim template more": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim(), claim({}, { metadata: { name: "more" } })),
    differs: ".spec.volumeClaimTemplates",
  },
  "a claim template that asks for more": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({ resources: { requests: { storage: "2Gi" } } })),
    differs: ".spec.volumeClaimTemplates",
  },
  "a claim template with another status": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({}, { status: { phase: "Bound" } })),
    differs: ".spec.volumeClaimTemplates",
  },
  "a claim template with another volume mode": {
    of: "testSanitizeState_statefulSetWithVolumeClaims_withMismatch",
    kind: StatefulSet,
    applied: claims(claim()),
    asked: claims(claim({ volumeMode: "Block" })),
    differs: ".spec.volumeClaimTemplates",
  },
  ...Object.fromEntries(
    ([[StatefulSet, "statefulSet"], [ReplicaSet, "replicaSet"], [
      DaemonSet,
      "daemonSet",
    ]] as const).flatMap(([kind, name]): (readonly [string, MatcherCase])[] => {
      const of = `testSanitizeState_${name}WithResources`;
      const asked = resources({ cpu: "2000m", memory: "4096Mi" }, {
        cpu: "4000m",
      });
      return [
        [`resources of a ${kind.kind} that are spelled otherwise`, {
          of,
          kind,
          applied: asked,
        }],
        [`other resources of a ${kind.kind}`, {
          of: `${of}_withMismatch`,
          kind,
          applied: asked,
          asked: resources({ cpu: "2000m", memory: "4097Mi" }),
          differs: `${WEB}.resources.requests.memory`,
        }],
      ];
    }),
  ),
  "resources that ask for nothing": {
    of: "whenResourceIsNull_doNothing",
    kind: Deployment,
    applied: workload(),
    asked: workload({ resources: {} }),
  },
  "another resource": {
    of: "whenResourceKeyMismatch_doNothing",
    kind: Deployment,
    applied: workload({ resources: { requests: { cpu: "2" } } }),
    asked: workload({ resources: { requests: { memory: "4Gi" } } }),
    differs: `${WEB}.resources.requests.memory`,
  },
  "resources as they are": {
    of: "whenResourcesHaveSameAmountAndFormat_doNothing",
    kind: Deployment,
    applied: resources({ memory: "4Gi" }),
  },
  "another amount": {
    of: "whenResourcesHaveNumericalAmountMismatch_doNothing",
    kind: Deployment,
    applied: resources({ cpu: "2", memory: "4Gi" }),
    asked: resources({ cpu: "4", memory: "4Gi" }),
    differs: `${WEB}.resources.requests.cpu`,
  },
  "another amount, beside a resource of others": {
    of:
      "whenResourcesHaveNumericalAmountMismatch_withEphemeralStorageAddedByOtherOperator_doNothing",
    kind: Deployment,
    applied: resources({ cpu: "2" }),
    foreign: {
      spec: {
        template: {
          spec: {
            containers: [{
              name: "web",
              resources: { requests: { "ephemeral-storage": "1Gi" } },
            }],
          },
        },
      },
    },
    asked: resources({ cpu: "4" }),
    differs: `${WEB}.resources.requests.cpu`,
  },
  "the same amount in another spelling": {
    of:
      "whenResourcesHaveAmountAndFormatMismatchWithSameNumericalAmount_thenSanitizeActualMap",
    kind: Deployment,
    applied: resources({ cpu: "2", memory: "4Gi" }),
    asked: resources({ cpu: "2000m", memory: "4096Mi" }, { cpu: 4 }),
  },
  "the same amount in another spelling, beside a resource of others": {
    of:
      "whenResourcesHaveAmountAndFormatMismatchWithSameNumericalAmount_withEphemeralStorageAddedByOtherOperator_thenSanitizeActualMap",
    kind: Deployment,
    applied: resources({ cpu: "2", memory: "4Gi" }),
    foreign: {
      spec: {
        template: {
          spec: {
            containers: [{
              name: "web",
              resources: { requests: { "ephemeral-storage": "1Gi" } },
            }],
          },
        },
      },
    },
    asked: resources({ cpu: "2000m", memory: "4096Mi" }),
  },
  "variables where there were none": {
    of: "whenEnvVarsIsEmpty_doNothing",
    kind: Deployment,
    applied: workload(),
    asked: env(["FOO", "foobar"]),
    differs: `${WEB}.env`,
  },
  "other values of variables": {
    of: "whenActualEnvVarValueIsNotEmpty_doNothing",
    kind: Deployment,
    applied: env(["FOO", "foo"], ["BAR", "bar"]),
    asked: env(["FOO", "foo"], ["BAR", "foo"]),
    differs: `${WEB}.env[{"name":"BAR"}].value`,
  },
  "other variables": {
    of: "whenActualAndDesiredEnvVarsAreDifferent_doNothing",
    kind: Deployment,
    applied: env(["FOO", "foo"]),
    asked: env(["BAR", "bar"]),
    differs: `${WEB}.env[]`,
  },
  "a value for a variable that was empty": {
    of: "whenActualEnvVarIsEmpty_doNothing",
    kind: Deployment,
    applied: env(["FOO", ""], ["BAR", ""]),
    asked: env(["FOO", "foo"], ["BAR", ""]),
    differs: `${WEB}.env[{"name":"FOO"}].value`,
  },
  "a blank value for a variable that had none": {
    of: "whenActualEnvVarIsNull_doNothing",
    kind: Deployment,
    applied: env(["FOO"]),
    asked: env(["FOO", " "]),
    differs: `${WEB}.env[{"name":"FOO"}].value`,
  },
  "an empty value for a variable that had none": {
    of: "whenActualEnvVarIsNull_withDesiredEnvVarEmpty_thenSanitizeActualMap",
    kind: Deployment,
    applied: env(["FOO"], ["BAR"]),
    asked: env(["FOO", ""], ["BAR", ""]),
  },
});
