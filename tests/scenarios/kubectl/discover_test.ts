import assert from "node:assert/strict";
import { kubectlTest } from "../../support/kubectl_test_case.ts";

kubectlTest(
  "kubectl api-resources lists kinds with short names and scope",
  async (kubectl) => {
    const apps = await kubectl.run(
      "api-resources --api-group=apps --no-headers",
    );
    assert.match(apps, /^deployments +deploy +apps\/v1 +true +Deployment$/m);
    assert.match(apps, /^statefulsets +sts +apps\/v1 +true +StatefulSet$/m);
    const cluster = await kubectl.run(
      "api-resources --namespaced=false -o name",
    );
    assert.match(cluster, /^namespaces$/m);
    assert.match(
      cluster,
      /^customresourcedefinitions\.apiextensions\.k8s\.io$/m,
    );
    assert.match(await kubectl.run("api-versions"), /^apps\/v1$/m);
  },
);

kubectlTest("kubectl explain shows the types of fields", async (kubectl) => {
  const replicas = await kubectl.run("explain deployment.spec.replicas");
  assert.match(replicas, /^GROUP: +apps\nKIND: +Deployment\nVERSION: +v1\n/);
  assert.match(replicas, /^FIELD: replicas <integer>$/m);
  assert.match(
    await kubectl.run("explain configmap.data"),
    /FIELD: data <map\[string\]string>/,
  );
  assert.match(
    await kubectl.fails("explain configmap.sails"),
    /field "sails" does not exist/,
  );
  assert.match(
    await kubectl.run("explain deployment.spec.strategy --recursive"),
    /^ {2}rollingUpdate\s<RollingUpdateDeployment>\n {4}maxSurge\s<IntOrString>$/m,
  );
});

kubectlTest("kubectl auth can-i and whoami ask the server", async (kubectl) => {
  assert.equal(await kubectl.run("auth can-i create deployments"), "yes\n");
  assert.match(
    await kubectl.run("auth can-i --list"),
    /^Resources +Non-Resource URLs +Resource Names +Verbs\n\*\.\* +\[\] +\[\] +\[\*\]\n/,
  );
  const unknown = await kubectl.result("auth can-i create zeppelins");
  assert.match(unknown.stderr, /doesn't have a resource type 'zeppelins'/);
  assert.match(await kubectl.run("auth whoami"), /Username +\S+/);
});

kubectlTest("kubectl version shows the server's version", async (kubectl) => {
  const { serverVersion } = JSON.parse(await kubectl.run("version -o json"));
  assert.equal(serverVersion.major, "1");
});
