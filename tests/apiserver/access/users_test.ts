import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer, type KeyPair } from "@coracle/dev/apiserver";
import {
  Client,
  type ClusterConfig,
  configFromText,
  untyped,
} from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";

const AUTHORITY = createAuthority({ commonName: "coracle" });
const REVIEWS = untyped({
  group: "authentication.k8s.io",
  version: "v1",
  kind: "SelfSubjectReview",
  plural: "selfsubjectreviews",
  scope: "Cluster",
});

async function userOf(
  config: ClusterConfig,
): Promise<Record<string, unknown>> {
  const client = new Client(config);
  try {
    const { status } = await client.create(REVIEWS, { metadata: {} });
    return (status as { userInfo: Record<string, unknown> }).userInfo;
  } finally {
    await client.close();
  }
}

/** Bun's servers do not show the certificates of clients. */
const NO_CERTIFICATES = "Bun" in globalThis;

function certified(
  server: ApiServer,
  user: { readonly commonName: string; readonly organizations: string[] },
  issuer: KeyPair = AUTHORITY,
): ClusterConfig {
  return {
    server: server.url,
    certificateAuthority: server.certificateAuthority,
    credentials: issueCertificate(issuer, { ...user, usage: "client" }),
  };
}

test("a client certificate of the server's authority names user and groups", {
  skip: NO_CERTIFICATES,
}, async () => {
  const server = await ApiServer.start({ authority: AUTHORITY });
  try {
    const user = await userOf(
      certified(server, { commonName: "jane", organizations: ["dev", "ops"] }),
    );
    assert.equal(user["username"], "jane");
    assert.deepEqual(user["groups"], ["dev", "ops", "system:authenticated"]);
  } finally {
    await server.stop();
  }
});

test("a kubeconfig and a client of a user act as that user", async () => {
  const server = await ApiServer.start();
  try {
    const root = await configFromText(
      server.kubeconfigFor({ name: "root", groups: ["system:masters"] }),
      { environment: {} },
    );
    const acting = await userOf({
      ...root,
      impersonate: { user: "jürgen", groups: ["a", "日本"] },
    });
    assert.deepEqual(acting, {
      username: "jürgen",
      groups: ["a", "日本", "system:authenticated"],
    });
    const robot = server.clientFor({ name: "system:serviceaccount:a:robot" });
    const { status } = await robot.create(REVIEWS, { metadata: {} });
    const { userInfo } = status as { userInfo: { groups: string[] } };
    assert.ok(userInfo.groups.includes("system:serviceaccounts:a"));
    assert.throws(() => server.clientFor({ name: "" }), RangeError);
  } finally {
    await server.stop();
  }
});

test("a client certificate of another authority is refused", {
  skip: NO_CERTIFICATES,
}, async () => {
  const server = await ApiServer.start({ authority: AUTHORITY });
  try {
    const refused = userOf(certified(
      server,
      { commonName: "root", organizations: ["system:masters"] },
      createAuthority({ commonName: "coracle" }),
    ));
    await assert.rejects(refused, { status: 401 });
  } finally {
    await server.stop();
  }
});

test("tokens of the options name their users, whose rights are those of roles", async () => {
  const server = await ApiServer.start({
    users: [
      { name: "ann", groups: ["dev"], token: "token-of-ann", uid: "7" },
      { name: "bob", groups: ["system:masters"], token: "token-of-bob" },
    ],
  });
  const config = (token: string) => ({
    server: server.url,
    certificateAuthority: server.certificateAuthority,
    credentials: { token },
  });
  try {
    assert.deepEqual(await userOf(config("token-of-ann")), {
      username: "ann",
      uid: "7",
      groups: ["dev", "system:authenticated"],
    });
    const kind = untyped({
      group: "",
      version: "v1",
      kind: "ConfigMap",
      plural: "configmaps",
      scope: "Namespaced",
    });
    const object = { metadata: { name: "a", namespace: "default" } };
    const ann = new Client(config("token-of-ann"), { retry: false });
    await assert.rejects(ann.create(kind, object), {
      status: 403,
      message: /User "ann" cannot create resource "configmaps"/,
    });
    await ann.close();
    const bob = new Client(config("token-of-bob"), { retry: false });
    await bob.create(kind, object);
    await bob.close();
  } finally {
    await server.stop();
  }
});

test("users of the options must have tokens of their own", async () => {
  const users = [{ name: "a", token: "t" }, { name: "b", token: "t" }];
  await assert.rejects(ApiServer.start({ users }), {
    name: "RangeError",
    message: /each user must have a token of its own/,
  });
});

test("without authorization every user has all rights", async () => {
  const server = await ApiServer.start({
    port: false,
    authorization: "none",
    users: [{ name: "ann", token: "token-of-ann" }],
  });
  const { status } = await server.transport.send({
    method: "GET",
    path: "/api/v1/secrets",
    headers: { authorization: "Bearer token-of-ann" },
  });
  assert.equal(status, 200);
  await server.stop();
});
