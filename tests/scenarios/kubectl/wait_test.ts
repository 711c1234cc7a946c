import assert from "node:assert/strict";
import { killGroup, startCommand } from "../../support/child_process.ts";
import { kubectlTest } from "../../support/kubectl_test_case.ts";
import { until } from "../../support/until.ts";

const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: "nginx:1" }] }
`;

kubectlTest("kubectl get --watch prints what changes", async (kubectl) => {
  await kubectl.run("create configmap seen");
  const child = startCommand(
    kubectl.command("get configmaps --watch --output-watch-events"),
  );
  try {
    let printed = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => printed += text);
    await until("the first list", () => printed.includes("ADDED"));
    await kubectl.run("create configmap later");
    await kubectl.run("label configmap seen a=b");
    await kubectl.run("delete configmap later");
    const expected = [
      /^ADDED\s+seen\s/m,
      /^ADDED\s+later\s/m,
      /^MODIFIED\s+seen\s/m,
      /^DELETED\s+later\s/m,
    ];
    await until(
      "all four events",
      () => expected.every((line) => line.test(printed)),
    );
  } finally {
    killGroup(child);
  }
});

kubectlTest(
  "kubectl wait waits for a condition and for a value",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "apply -f -");
    const waiting = kubectl.run(
      "wait deploy/web --for=condition=Tested --timeout=20s",
    );
    await kubectl.run(
      "patch deploy web --subresource=status -p",
      '{"status":{"conditions":[{"type":"Tested","status":"True"}]}}',
    );
    assert.equal(await waiting, "deployment.apps/web condition met\n");
    await kubectl.run("wait deploy/web --for=jsonpath={.spec.replicas}=2");
    await kubectl.run("wait deploy/web --for=create --timeout=5s");
  },
);

kubectlTest(
  "kubectl rollout status follows a Deployment that becomes ready",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "apply -f -");
    assert.match(
      await kubectl.run("rollout status deploy web --timeout=20s"),
      /deployment "web" successfully rolled out\n$/,
    );
    assert.match(
      await kubectl.run("get deploy web --no-headers"),
      /^web +2\/2 +2 +2 /,
    );
    await kubectl.run("rollout restart deploy web");
    await kubectl.run("rollout status deploy web --timeout=20s");
    await kubectl.run(
      "wait deploy/web --for=condition=Available --timeout=20s",
    );
  },
  { simulate: true },
);

kubectlTest(
  "kubectl rollout history lists the revisions, and undo restores the last one",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "apply -f -");
    await kubectl.run("rollout status deploy web --timeout=20s");
    await kubectl.run("set image deploy web *=other");
    await kubectl.run("rollout status deploy web --timeout=20s");
    assert.match(
      await kubectl.run("rollout history deploy web"),
      /REVISION.*\n1 .*\n2 /,
    );
    const image = "get deploy web -o jsonpath={..containers[0].image}";
    assert.equal(await kubectl.run(image), "other");
    await kubectl.run("rollout undo deploy web");
    await kubectl.run("rollout status deploy web --timeout=20s");
    assert.notEqual(await kubectl.run(image), "other");
    assert.match(
      await kubectl.run("get pods --no-headers"),
      /^web-[a-z0-9]+-[a-z0-9]{5} +1\/1 +Running +0 /m,
    );
  },
  { simulate: true },
);
