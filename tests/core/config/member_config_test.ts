import assert from "node:assert/strict";
import { test } from "node:test";
import { memberConfig } from "../../../core/config/member_config.ts";

/** Kubeconfig with one cluster and one user. */
function kubeconfig(cluster: object, user: object): string {
  return JSON.stringify({
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "there", user: "me" } }],
    clusters: [{
      name: "there",
      cluster: { server: "https://10.0.0.1", ...cluster },
    }],
    users: [{ name: "me", user }],
  });
}

const contained = { source: "Secret default/east", folder: undefined };

test("Kubeconfig of a Secret with all that it needs is used", async () => {
  const { server, credentials } = await memberConfig(
    kubeconfig({}, { token: "a-token" }),
    contained,
  );
  assert.equal(server, "https://10.0.0.1");
  assert.ok(credentials !== undefined && "current" in credentials);
  assert.equal((await credentials.current()).token, "a-token");
});

test("Kubeconfig of a Secret that names a program or a file is refused", async () => {
  const file =
    "it names a file of this process, so embed its content (kubectl config view --raw --flatten)";
  const cases: readonly (readonly [object, object, string])[] = [
    [
      {},
      {
        exec: {
          apiVersion: "client.authentication.k8s.io/v1",
          command: "/bin/secret-tool",
        },
      },
      '"users[me].user.exec": it runs a program in this process, so use a token',
    ],
    [
      {},
      { tokenFile: "/etc/secret-file" },
      `"users[me].user.tokenFile": ${file}`,
    ],
    [
      {},
      {
        "client-certificate": "/etc/secret-file",
        "client-key-data": "c2VjcmV0",
      },
      `"users[me].user.client-certificate": ${file}`,
    ],
    [
      {},
      { "client-certificate-data": "c2VjcmV0", "client-key": "secret-file" },
      `"users[me].user.client-key": ${file}`,
    ],
    [
      { "certificate-authority": "/etc/secret-file" },
      { token: "secret-token" },
      `"clusters[there].cluster.certificate-authority": ${file}`,
    ],
  ];
  for (const [cluster, user, why] of cases) {
    await assert.rejects(
      memberConfig(kubeconfig(cluster, user), contained),
      { name: "TypeError", message: `Cannot use Secret default/east: ${why}` },
    );
  }
});

test("Error about the kubeconfig of a Secret quotes no value of it", async () => {
  for (
    const text of [
      "users: [secret-token",
      "secret-token",
      kubeconfig({}, { token: ["secret-token"] }),
      kubeconfig({ server: "https://secret-token@[" }, { token: "x" }),
      kubeconfig({ "proxy-url": "secret-token" }, { token: "x" }),
      kubeconfig({}, { token: "secret-token\n" }),
      kubeconfig({}, { token: "a", username: "b", password: "secret-token" }),
    ]
  ) {
    await assert.rejects(memberConfig(text, contained), (error: Error) => {
      assert.match(error.message, /^Cannot /);
      assert.ok(error.message.includes("Secret default/east"), error.message);
      assert.ok(!error.message.includes("secret-tok"), error.message);
      return true;
    });
  }
});
