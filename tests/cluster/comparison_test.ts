import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer, type KubernetesVersion } from "@coracle/dev/apiserver";
import { realTarget } from "../transcripts/real_target.ts";
import { ON_REAL_CLUSTER } from "../support/scenario_cluster.ts";
import { type Target, WireClient } from "../transcripts/http_client.ts";
import { RELEASES } from "../../dev/apiserver/kubernetes_release.ts";
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
    const real = await realTarget();
    const server = await ApiServer.start({ version: await versionOf(real) });
    const embedded = targetOf(server);
    try {
      assert.deepEqual(await compareServers(one, { real, embedded }), []);
    } finally {
      await server.stop();
    }
  });
}

/** Alpha fields of 1.35 that 1.36 has removed. */
const WITHDRAWN_FIELDS: readonly string[] = [
  "io.k8s.api.core.v1.PodSpec.workloadRef",
];

const DISCOVERY =
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Stable resources of a server, and the fields of their definitions. */
async function describe(target: Target): Promise<Record<string, string[]>> {
  const client = new WireClient(target);
  const get = async (path: string, accept = "application/json") => {
    const headers = { accept };
    // deno-lint-ignore no-explicit-any -- documents of several kinds
    return (await client.send({ method: "GET", path, headers })).body as any;
  };
  const found: Record<string, string[]> = {};
  for (const root of ["api", "apis"]) {
    for (const group of (await get(`/${root}`, DISCOVERY)).items) {
      const { name = "" } = group.metadata;
      // Custom resources of other tests come and go.
      if (name !== "" && !/^[a-z]+$|\.k8s\.io$/.test(name)) continue;
      for (const { version, resources } of group.versions) {
        if (!/^v\d+$/.test(version)) continue;
        const key = name ? `apis/${name}/${version}` : `api/${version}`;
        found[key] = resources.map((each: { resource: string }) =>
          each.resource
        ).sort();
        const { components } = await get(`/openapi/v3/${key}`);
        for (const [name, schema] of Object.entries(components.schemas)) {
          const { properties = {} } = schema as { properties?: object };
          found[name] = Object.keys(properties).sort();
        }
      }
    }
  }
  client.close();
  return found;
}

test("The embedded server has the resources and fields of its version", {
  skip: ON_REAL_CLUSTER ? false : "there is no real cluster to compare with",
}, async (context) => {
  const real = await realTarget();
  const version = await versionOf(real);
  if (version === undefined) {
    context.skip("the embedded server does not reproduce its version");
    return;
  }
  const server = await ApiServer.start({ version });
  try {
    const embedded = await describe(targetOf(server));
    const found = await describe(real);
    for (const [name, fields] of Object.entries(embedded)) {
      const known = found[name]?.filter((field) =>
        !WITHDRAWN_FIELDS.includes(`${name}.${field}`)
      );
      assert.deepEqual(fields, known, name);
    }
    const paths = (all: object) =>
      Object.keys(all).filter((name) => name.includes("/")).sort();
    assert.deepEqual(paths(embedded), paths(found));
  } finally {
    await server.stop();
  }
});

function targetOf(server: ApiServer): Target {
  return {
    url: server.url,
    token: server.token,
    authority: server.certificateAuthority,
  };
}

/** Version of a real server, if the embedded one reproduces it. */
async function versionOf(
  target: Target,
): Promise<KubernetesVersion | undefined> {
  const client = new WireClient(target);
  const { body } = await client.send({
    method: "GET",
    path: "/version",
    headers: {},
  });
  client.close();
  const { major, minor } = body as { major: string; minor: string };
  const version = `${major}.${minor}`;
  return version in RELEASES ? version as KubernetesVersion : undefined;
}
