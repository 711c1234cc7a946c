import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Client,
  type ControllerOptions,
  Operator,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { inboundSource, watch } from "@coracle/operator/sources";

const transport = {
  send: () => Promise.reject(new Error("unused")),
  close: () => Promise.resolve(),
};
const clusters = [{ name: "east", target: { transport } }];

/** Error of a registration with options. */
function refused(options: object): string {
  try {
    new Operator().register(
      ConfigMap,
      { reconcile() {} },
      options as ControllerOptions<ConfigMap>,
    );
  } catch (error) {
    return (error as Error).message;
  }
  return "none";
}

test("Options that clusters cannot share are refused with what to do", () => {
  const name = 'controller "configmap"';
  const client = new Client({ transport });
  const cases: readonly (readonly [object, string])[] = [
    [{ clusters }, "none"],
    [
      { perCluster: () => ({}) },
      `Cannot register ${name}: "perCluster" is for the option "clusters", which is absent`,
    ],
    [
      { clusters, sources: [inboundSource("calls")] },
      `Cannot register ${name}: "sources" keeps state by object, so that each cluster needs one of its own: move it to perCluster: () => ({ sources })`,
    ],
    [
      { clusters, rateLimit: { admit: () => 0 } },
      `Cannot register ${name}: "rateLimit" keeps state by object, so that each cluster needs one of its own: move it to perCluster: () => ({ rateLimit })`,
    ],
    [{ clusters, rateLimit: { limit: 3, period: "1s" } }, "none"],
    [
      { clusters, perCluster: () => ({ sources: [inboundSource("calls")] }) },
      "none",
    ],
    [
      { clusters, watches: [watch(ConfigMap, { name: "far", client })] },
      `Cannot register ${name}: with "clusters" a watch() has the client of each cluster, so leave out { client } of "far"`,
    ],
    [
      { clusters, perCluster: () => ({ name: "other" }) },
      'Cannot read the options of perCluster(): there is no option "name", only owns, rateLimit, sources, watches, workflow: received name',
    ],
    [
      { clusters, admission: { failurePolicy: "Fail", validate: () => {} } },
      `Cannot register ${name}: "admission" is for objects of the operator's own cluster`,
    ],
    [
      { clusters: "east" },
      `Cannot use the clusters of ${name}: a set of clusters must be an array: received a string`,
    ],
    [
      { clusters: [...clusters, ...clusters] },
      `Cannot use the clusters of ${name}: the names of clusters must differ: received "east" twice`,
    ],
    [
      { clusters: [{ ...clusters[0], name: "East/1" }] },
      `Cannot use the clusters of ${name}: the name of a cluster has up to 253 lower-case letters, digits, dashes and dots: received "East/1"`,
    ],
    [
      {
        clusters: Array.from(
          { length: 10_001 },
          (_, index) => ({ ...clusters[0], name: `c${index}` }),
        ),
      },
      `Cannot use the clusters of ${name}: there must be at most 10000: received 10001`,
    ],
  ];
  for (const [options, expected] of cases) {
    assert.equal(refused(options), expected);
  }
});

test("Handle of a controller of clusters refuses what is of one cluster", async () => {
  const handle = new Operator().register(ConfigMap, { reconcile() {} }, {
    clusters,
  });
  assert.throws(() => handle.primaries, /so read ctx\.primaries in a run$/);
  await assert.rejects(
    handle.addSource(inboundSource("calls")),
    /^TypeError: Cannot add event source "calls" to controller "configmap": .* "perCluster"$/,
  );
  await assert.rejects(handle.removeSource("calls"), TypeError);
});
