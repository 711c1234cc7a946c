import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterConfig, CredentialSource } from "@coracle/operator/client";
import { FollowedTarget } from "../../../../core/operator/clusters/cluster_target.ts";

const given: ClusterConfig = {
  server: "https://east.example.com",
  certificateAuthority: "first authority",
  credentials: { token: "first" },
};

/** Configuration that the client of a cluster was created with. */
function followed(first: ClusterConfig = given): {
  readonly target: FollowedTarget;
  readonly source: CredentialSource;
  readonly authority: () => Promise<string>;
} {
  const target = new FollowedTarget(first);
  const config = target.target as ClusterConfig;
  return {
    target,
    source: config.credentials as CredentialSource,
    authority: config.certificateAuthority as () => Promise<string>,
  };
}

test("Client of a cluster uses the credentials of the last set", async () => {
  const { target, source, authority } = followed();
  assert.deepEqual(await source.current(), { token: "first" });
  assert.equal(
    target.follow({
      ...given,
      serverName: undefined,
      certificateAuthority: () => Promise.resolve("second authority"),
      credentials: { token: "second" },
    }),
    true,
  );
  assert.deepEqual(await source.current(), { token: "second" });
  assert.equal(await authority(), "second authority");
});

test("Credential that was replaced before its refusal is not refreshed", async () => {
  const { target, source } = followed();
  const refused = await source.current();
  target.follow({ ...given, credentials: { token: "second" } });
  assert.deepEqual(await source.refresh(refused), { token: "second" });
  let refreshes = 0;
  const last = { token: "third" };
  target.follow({
    ...given,
    credentials: {
      current: () => Promise.resolve(last),
      refresh: () => {
        refreshes++;
        return Promise.resolve({ token: "fourth" });
      },
    },
  });
  assert.deepEqual(await source.refresh(last), { token: "fourth" });
  assert.equal(refreshes, 1);
});

test("Cluster with another place or way to it needs another client", () => {
  const { target } = followed();
  const others: readonly Partial<ClusterConfig>[] = [
    { server: "https://west.example.com" },
    { certificateAuthority: undefined },
    { serverName: "west" },
    { proxyUrl: "http://proxy:3128" },
    { impersonate: { user: "jane" } },
    { namespace: "other" },
  ];
  for (const other of others) {
    assert.equal(target.follow({ ...given, ...other }), false);
  }
  const transport = {
    send: () => Promise.reject(new Error("unused")),
    close: () => Promise.reject(new Error("a given transport was closed")),
  };
  assert.equal(target.follow({ transport }), false);
  const direct = new FollowedTarget({ transport });
  assert.equal(direct.follow({ transport }), true);
  assert.equal(direct.follow({ transport: { ...transport } }), false);
});
