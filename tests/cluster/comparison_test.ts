import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { realTarget } from "../transcripts/real_target.ts";
import { ON_REAL_CLUSTER } from "../support/scenario_cluster.ts";
import { compareServers } from "./comparison.ts";
import { KNOWN_DIFFERENCES } from "./known_differences.ts";
import { CASES } from "./requests.ts";

for (const one of CASES) {
  const skip = ON_REAL_CLUSTER
    ? KNOWN_DIFFERENCES[one.name] ?? false
    : "there is no real cluster to compare with";
  test(`The embedded server answers as the real one: ${one.name}`, {
    skip,
  }, async () => {
    const server = await ApiServer.start();
    const embedded = {
      url: server.url,
      token: server.token,
      authority: server.certificateAuthority,
    };
    try {
      const real = await realTarget();
      assert.deepEqual(await compareServers(one, { real, embedded }), []);
    } finally {
      await server.stop();
    }
  });
}
