import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createPublicKey, verify } from "node:crypto";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type { ApiServerOptions } from "@coracle/dev/apiserver";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { createAuthority } from "../../../core/admission/certificates.ts";
import { TestServer } from "../support/test_server.ts";

const IDENTITY = "/apis/authentication.k8s.io/v1";
const SPACE = "/api/v1/namespaces/default";
const ISSUER = "https://kubernetes.default.svc";

interface TokenServer {
  readonly server: TestServer;
  readonly clock: VirtualClock;
  readonly uid: string;
  token(spec?: object): Promise<string>;
  /** Who the bearer of a token is; a number is the status of a refusal. */
  whoIs(token: string): Promise<Record<string, unknown> | number>;
}

async function onServer(
  run: (server: TokenServer) => Promise<void>,
  options: Pick<ApiServerOptions, "serviceAccounts"> = {},
) {
  const clock = new VirtualClock();
  const server = new TestServer({ builtin, clock, ...options });
  const made = await server.send("POST", `${SPACE}/serviceaccounts`, {
    metadata: { name: "robot" },
  });
  try {
    await run({
      server,
      clock,
      uid: made.body.metadata.uid,
      async token(spec = {}) {
        const path = `${SPACE}/serviceaccounts/robot/token`;
        const { body, status } = await server.send("POST", path, { spec });
        assert.equal(status, 201, JSON.stringify(body));
        return body.status.token;
      },
      async whoIs(token) {
        const path = `${IDENTITY}/selfsubjectreviews`;
        const { status, body } = await server.send("POST", path, {}, {
          authorization: `Bearer ${token}`,
        });
        return status === 201 ? body.status.userInfo : status;
      },
    });
  } finally {
    server.stop();
  }
}

test("a token of a service account is a signed JWT that names its user", () =>
  onServer(async ({ server, clock, uid, token, whoIs }) => {
    const jwt = await token({ expirationSeconds: 600 });
    const [head = "", body = "", signature = ""] = jwt.split(".");
    const read = (text: string) =>
      JSON.parse(Buffer.from(text, "base64url").toString());
    const { jti, ...claims } = read(body);
    const now = Math.floor(clock.wallTime() / 1000);
    assert.deepEqual(claims, {
      aud: [ISSUER],
      exp: now + 600,
      iat: now,
      nbf: now,
      iss: ISSUER,
      sub: "system:serviceaccount:default:robot",
      "kubernetes.io": {
        namespace: "default",
        serviceaccount: { name: "robot", uid },
      },
    });
    assert.deepEqual(await whoIs(jwt), {
      username: "system:serviceaccount:default:robot",
      uid,
      groups: [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
      ],
      extra: { "authentication.kubernetes.io/credential-id": [`JTI=${jti}`] },
    });
    for (const end of ["!!", "=", "."]) {
      assert.equal(await whoIs(`${jwt}${end}`), 401, JSON.stringify(end));
    }
    const path = "/.well-known/openid-configuration";
    const issuer = (await server.send("GET", path)).body;
    assert.equal(issuer.issuer, ISSUER);
    const keys = await server.send("GET", new URL(issuer.jwks_uri).pathname);
    const [key] = keys.body.keys;
    assert.equal(key.kid, read(head).kid);
    assert.ok(verify(
      "sha256",
      Buffer.from(`${head}.${body}`),
      {
        key: createPublicKey({ key, format: "jwk" }),
        dsaEncoding: "ieee-p1363",
      },
      Buffer.from(signature, "base64url"),
    ));
  }));

test("a token is refused when it is expired, changed or for another audience", () =>
  onServer(async ({ clock, token, whoIs }) => {
    const jwt = await token({ expirationSeconds: 600 });
    const [head, body = "", signature] = jwt.split(".");
    const other = Buffer.from(body, "base64url").toString()
      .replaceAll("robot", "other");
    const forged = Buffer.from(other).toString("base64url");
    assert.equal(await whoIs(`${head}.${forged}.${signature}`), 401);
    assert.equal(await whoIs(await token({ audiences: ["vault"] })), 401);
    await clock.advance(600_000 + 50_000);
    assert.equal(typeof await whoIs(jwt), "object");
    await clock.advance(20_000);
    assert.equal(await whoIs(jwt), 401);
  }));

test("a token is refused when its account or its bound object is gone", () =>
  onServer(async ({ server, token, whoIs }) => {
    await server.send("POST", `${SPACE}/secrets`, { metadata: { name: "s" } });
    const boundObjectRef = { apiVersion: "v1", kind: "Secret", name: "s" };
    const bound = await token({ boundObjectRef });
    const free = await token();
    assert.equal(typeof await whoIs(bound), "object");
    await server.send("DELETE", `${SPACE}/secrets/s`);
    assert.equal(await whoIs(bound), 401);
    assert.equal(typeof await whoIs(free), "object");
    await server.send("DELETE", `${SPACE}/serviceaccounts/robot`);
    assert.equal(await whoIs(free), 401);
    await server.send("POST", `${SPACE}/serviceaccounts`, {
      metadata: { name: "robot" },
    });
    assert.equal(await whoIs(free), 401);
  }));

test("a token that is bound to a Pod names Pod and node", () =>
  onServer(async ({ server, token, whoIs }) => {
    const { body: pod } = await server.send("POST", `${SPACE}/pods`, {
      metadata: { name: "p" },
      spec: {
        serviceAccountName: "robot",
        nodeName: "n",
        containers: [{ name: "a", image: "a" }],
      },
    });
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "p" };
    const user = await whoIs(await token({ boundObjectRef }));
    const { extra } = user as { extra: Record<string, string[]> };
    const prefix = "authentication.kubernetes.io";
    assert.deepEqual(extra[`${prefix}/pod-name`], ["p"]);
    assert.deepEqual(extra[`${prefix}/pod-uid`], [pod.metadata.uid]);
    assert.deepEqual(extra[`${prefix}/node-name`], ["n"]);
    const refused = await server.send(
      "POST",
      `${SPACE}/serviceaccounts/default/token`,
      { spec: { boundObjectRef } },
    );
    assert.equal(refused.status, 400);
  }));

test("a TokenReview answers by audience, with the reason of a refusal", () =>
  onServer(async ({ server, clock, token }) => {
    const review = async (spec: object) =>
      (await server.send("POST", `${IDENTITY}/tokenreviews`, { spec })).body
        .status;
    const jwt = await token({ audiences: ["vault", ISSUER] });
    const own = await review({ token: jwt });
    assert.deepEqual([own.authenticated, own.audiences], [true, [ISSUER]]);
    const vault = await review({ token: jwt, audiences: ["vault", "x"] });
    assert.deepEqual(vault.audiences, ["vault"]);
    const wrong = await review({ token: jwt, audiences: ["x"] });
    assert.equal(wrong.authenticated, undefined);
    assert.match(wrong.error, /is invalid for the target audiences \["x"\]/);
    await clock.advance(3_700_000);
    const late = await review({ token: jwt });
    assert.match(late.error, /service account token has expired/);
  }));

test("impersonation asks for the right to each part of the user", () =>
  onServer(async ({ server }) => {
    const act = (headers: Record<string, string>) =>
      server.send("POST", `${IDENTITY}/selfsubjectreviews`, {}, headers);
    const ann = await act({
      "impersonate-user": "ann",
      "impersonate-group": "dev, ops",
      "impersonate-uid": "7",
      "impersonate-extra-acme.com%2fteam": "red",
    });
    assert.deepEqual(ann.body.status.userInfo, {
      username: "ann",
      uid: "7",
      groups: ["dev", "ops", "system:authenticated"],
      extra: { "acme.com/team": ["red"] },
    });
    const robot = await act({
      "impersonate-user": "system:serviceaccount:default:robot",
    });
    assert.deepEqual(robot.body.status.userInfo.groups, [
      "system:serviceaccounts",
      "system:serviceaccounts:default",
      "system:authenticated",
    ]);
    const nobody = await act({ "impersonate-group": "dev" });
    assert.equal(nobody.status, 500);
    assert.match(
      nobody.body,
      /requested \[\{Group {2}dev {4}\}\] without impersonating a user/,
    );
  }));

test("a user without the right to impersonate is refused", () =>
  onServer(async ({ server, token }) => {
    const authorization = `Bearer ${await token()}`;
    const { status, body } = await server.send("GET", "/version", undefined, {
      authorization,
      "impersonate-user": "ann",
    });
    assert.equal(status, 403);
    assert.equal(
      body.message,
      'users "ann" is forbidden: User "system:serviceaccount:default:robot" cannot impersonate resource "users" in API group "" at the cluster scope',
    );
  }));

test("requests without credentials are anonymous and may read little", () =>
  onServer(async ({ server }) => {
    const get = async (path: string, authorization: string) =>
      (await server.send("GET", path, undefined, { authorization })).status;
    assert.equal(await get("/healthz", ""), 200);
    assert.equal(await get("/version", ""), 200);
    assert.equal(await get("/api", ""), 403);
    assert.equal(await get("/api", "Basic YTpi"), 403);
    assert.equal(await get("/version", "Bearer wrong"), 401);
  }));

test("issuer, audience and keys of service account tokens are options", async () => {
  const [old, signing] = ["old", "new"].map((commonName) =>
    createAuthority({ commonName })
  );
  const tokens: string[] = [];
  for (
    const serviceAccounts of [
      { issuers: ["https://old.example"], signingKey: old?.key },
      {
        issuers: ["https://new.example", "https://old.example"],
        audiences: ["api", "https://old.example"],
        signingKey: signing?.key,
        keys: [old?.certificate ?? "", signing?.certificate ?? ""],
      },
      {
        issuers: ["https://new.example"],
        signingKey: signing?.key,
        keys: [old?.certificate ?? ""],
      },
    ]
  ) {
    await onServer(async ({ server, token, whoIs }) => {
      tokens.push(await token());
      const [first = "", second = ""] = tokens;
      if (tokens.length === 1) {
        assert.equal(typeof await whoIs(first), "object");
        return;
      }
      const claims = JSON.parse(
        Buffer.from(second.split(".")[1] ?? "", "base64url").toString(),
      );
      assert.equal(claims.iss, "https://new.example");
      assert.deepEqual(claims.aud, ["api", "https://old.example"]);
      const { body: keys } = await server.send("GET", "/openid/v1/jwks");
      assert.equal(keys.keys.length, tokens.length === 2 ? 2 : 1);
      // All of these servers create accounts with the same UIDs.
      const review = async (jwt: string) =>
        (await server.send("POST", `${IDENTITY}/tokenreviews`, {
          spec: { token: jwt },
        })).body.status;
      if (tokens.length === 2) {
        assert.equal((await review(first)).authenticated, true);
        assert.equal(typeof await whoIs(second), "object");
      } else {
        const { error } = await review(second);
        assert.match(error, /failed to verify signature/);
      }
    }, { serviceAccounts });
  }
});
