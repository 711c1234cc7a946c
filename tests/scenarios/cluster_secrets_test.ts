/**
 * Clusters of the kubeconfigs of Secrets, over real sockets.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { Operator } from "@coracle/operator/core";
import { ConfigMap, Secret, SelfSubjectReview } from "@coracle/operator/kinds";
import { kubeconfigSecrets } from "@coracle/operator/sources";
import { until } from "../support/until.ts";

const labels = { "clusters.coracle.dev/set": "secrets" };
const namespace = "default";

/** Secret with a kubeconfig. */
const secretOf = (name: string, kubeconfig: string) => ({
  metadata: { namespace, name, labels },
  data: { kubeconfig: btoa(kubeconfig) },
});

test("Clusters of Secrets join, change credentials and leave", async () => {
  const home = await ApiServer.start({ port: false });
  const member = await ApiServer.start({ port: 0, host: "127.0.0.1" });
  const groups = ["system:masters"];
  const first = member.kubeconfigFor({ name: "first", groups });
  const second = member.kubeconfigFor({ name: "second", groups });
  await home.client.create(Secret, secretOf("east", first));
  await home.client.create(
    Secret,
    secretOf("refused", first.replace("token:", "tokenFile:")),
  );
  await member.client.create(ConfigMap, {
    metadata: { namespace, name: "web" },
  });
  const users: string[] = [];
  const messages: string[] = [];
  const log = {
    debug() {},
    info: (message: string) => void messages.push(message),
    warn() {},
    error() {},
    with: () => log,
  };
  const operator = new Operator({ client: home.client, logger: log });
  const controller = operator.register(ConfigMap, {
    async reconcile({ metadata: { name } }, ctx) {
      if (name !== "web") return;
      const { status } = await ctx.client.create(SelfSubjectReview, {
        metadata: {},
      });
      users.push(`${ctx.cluster} ${status?.userInfo?.username}`);
    },
  }, {
    namespaces: [namespace],
    clusters: kubeconfigSecrets({
      labelSelector: "clusters.coracle.dev/set=secrets",
      namespace,
    }),
  });
  try {
    await operator.start();
    await until(
      "a run with the first user",
      () => users.includes("east first"),
    );
    const refused = controller.health().clusters?.find(({ name }) =>
      name === "refused"
    );
    assert.match(
      refused?.error ?? "",
      /^Cannot use Secret default\/refused: "users\[coracle\]\.user\.tokenFile"/,
    );
    await home.client.patch(Secret, { namespace, name: "east" }, {
      data: { kubeconfig: btoa(second) },
    });
    await until("a run with the second user", () => {
      controller.trigger("east/default/web");
      return users.includes("east second");
    });
    const joins = messages.filter((message) =>
      message === "A cluster has joined"
    );
    assert.equal(joins.length, 1, "the cluster has joined again");
    await home.client.delete(Secret, { namespace, name: "east" });
    await until(
      "the cluster has left",
      () => controller.health().clusters?.every(({ name }) => name !== "east"),
    );
  } finally {
    await operator.stop();
    await home.stop();
    await member.stop();
  }
});

test("A missing right on the Secrets of clusters is named at the start", async () => {
  const home = await ApiServer.start({ port: false });
  const client = home.clientFor({ name: "nobody" });
  const operator = new Operator({ client });
  operator.register(ConfigMap, { reconcile() {} }, {
    clusters: kubeconfigSecrets({ labelSelector: "a=b", namespace }),
  });
  try {
    await assert.rejects(
      operator.start(),
      /Cannot watch v1 Secret in namespace default: the right is missing, so give the operator's account a Role with/,
    );
  } finally {
    await operator.stop();
    await home.stop();
  }
});
