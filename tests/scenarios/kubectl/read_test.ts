import assert from "node:assert/strict";
import { kubectlTest } from "../../support/kubectl_test_case.ts";

const MANIFESTS = `
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, labels: { app: web }, annotations: { note: hello } }
data: { color: blue }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, labels: { app: web } }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: "nginx:1" }] }
`;

/** The cells of a table, row by row. */
function cells(table: string): readonly (readonly string[])[] {
  return table.trimEnd().split("\n").map((row) => row.split(/\s{2,}/));
}

kubectlTest(
  "kubectl get prints the columns of a kind, more of them with wide",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "apply -f -");
    const [header, row] = cells(await kubectl.run("get configmap settings"));
    assert.deepEqual(header, ["NAME", "DATA", "AGE"]);
    assert.deepEqual(row?.slice(0, 2), ["settings", "1"]);
    const [wide, deployment] = cells(
      await kubectl.run("get deploy web -o wide"),
    );
    assert.deepEqual(wide, [
      "NAME",
      "READY",
      "UP-TO-DATE",
      "AVAILABLE",
      "AGE",
      "CONTAINERS",
      "IMAGES",
      "SELECTOR",
    ]);
    assert.match(deployment?.[1] ?? "", /^\d\/2$/);
    assert.deepEqual(deployment?.slice(5), ["web", "nginx:1", "app=web"]);
  },
);

kubectlTest(
  "kubectl get prints YAML, JSON paths, custom columns and names",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "apply -f -");
    const yaml = await kubectl.run("get configmap settings -o yaml");
    assert.match(
      yaml,
      /^apiVersion: v1\ndata:\n {2}color: blue\nkind: ConfigMap\n/,
    );
    assert.match(yaml, /^ {2}uid: [\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/m);
    assert.doesNotMatch(yaml, /managedFields/);
    assert.equal(
      await kubectl.run(
        "get deploy web -o",
        "jsonpath={.spec.template.spec.containers[*].image}",
      ),
      "nginx:1",
    );
    assert.deepEqual(
      cells(
        await kubectl.run(
          "get configmap settings -o custom-columns=NAME:.metadata.name,COLOR:.data.color",
        ),
      ),
      [["NAME", "COLOR"], ["settings", "blue"]],
    );
    assert.equal(
      await kubectl.run("get deploy,configmap -l app=web -o name"),
      "deployment.apps/web\nconfigmap/settings\n",
    );
  },
);

kubectlTest(
  "kubectl get selects by labels, fields and short names",
  async (kubectl) => {
    for (const name of ["a", "b", "c"]) {
      await kubectl.run(`create configmap ${name} --from-literal=k=v`);
    }
    await kubectl.run("label configmap a b tier=front");
    const names = (flags: string) => kubectl.run(`get cm -o name ${flags}`);
    assert.equal(await names("-l tier"), "configmap/a\nconfigmap/b\n");
    assert.equal(
      await names("-l tier=front --field-selector metadata.name!=a"),
      "configmap/b\n",
    );
    assert.equal(
      await names("--field-selector metadata.name=c"),
      "configmap/c\n",
    );
    assert.equal(await names("-l tier=back"), "");
    assert.match(
      await kubectl.fails("get cm --field-selector data.k=v"),
      /"data\.k" is not a known field selector: only "metadata\.name", "metadata\.namespace"/,
    );
  },
);

kubectlTest("kubectl get reads a long list in chunks", async (kubectl) => {
  const list = Array.from(
    { length: 25 },
    (_, index) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: item-${
        String(index).padStart(2, "0")
      }, labels: { many: "yes" } }\n`,
  );
  await kubectl.feed(list.join("---\n"), "create -f -");
  const { stdout: names, stderr: requests } = await kubectl.result(
    "get cm -l many --chunk-size=10 -o name -v=6",
  );
  assert.equal(names.trimEnd().split("\n").length, 25);
  assert.match(names, /^configmap\/item-00\n[^]*configmap\/item-24\n$/);
  const pages = requests.match(/configmaps\?\S*limit=10\S* 200 OK/g);
  assert.deepEqual(
    pages?.map((page) => page.includes("continue=")),
    [false, true, true],
  );
});

kubectlTest(
  "kubectl get sorts, prints several kinds as a list, and raw answers",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "apply -f -");
    await kubectl.run("create configmap another --from-literal=color=amber");
    assert.equal(
      await kubectl.run(
        "get cm settings another --sort-by={.data.color} -o",
        "go-template={{range .items}}{{.data.color}} {{end}}",
      ),
      "amber blue ",
    );
    const list = JSON.parse(
      await kubectl.run("get cm,deploy -l app=web -o json"),
    );
    assert.equal(list.kind, "List");
    assert.deepEqual(
      list.items.map(({ kind }: { kind: string }) => kind),
      ["ConfigMap", "Deployment"],
    );
    const raw = `/api/v1/namespaces/${kubectl.namespace}/configmaps/settings`;
    assert.deepEqual(
      JSON.parse(await kubectl.run(`get --raw ${raw}`)).data,
      { color: "blue" },
    );
  },
);

kubectlTest(
  "kubectl describe shows an object with its events",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "apply -f -");
    const text = await kubectl.run("describe configmap settings");
    assert.match(text, /^Name: +settings\n/);
    assert.match(text, /^Annotations: +note: hello$/m);
    assert.match(text, /^color:\n----\nblue\n/m);
    const deployment = await kubectl.run("describe deploy web");
    assert.match(deployment, /^Replicas: +2 desired /m);
    assert.match(deployment, /^ +Image: +nginx:1$/m);
  },
);

kubectlTest(
  "kubectl events shows what was recorded about an object",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "apply -f -");
    const uid = await kubectl.run(
      "get configmap settings -o jsonpath={.metadata.uid}",
    );
    const now = new Date().toISOString().replace(/\.\d+/, "");
    await kubectl.feed(
      JSON.stringify({
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: "settings.1" },
        involvedObject: {
          apiVersion: "v1",
          kind: "ConfigMap",
          name: "settings",
          namespace: kubectl.namespace,
          uid,
        },
        type: "Warning",
        reason: "Faded",
        message: "The colour has faded",
        source: { component: "test" },
        firstTimestamp: now,
        lastTimestamp: now,
        count: 1,
      }),
      "create -f -",
    );
    const shown = /Warning\s+Faded\s+.*The colour has faded/;
    assert.match(await kubectl.run("events --for configmap/settings"), shown);
    assert.match(await kubectl.run("events --types=Warning"), shown);
    assert.equal(
      await kubectl.run("events --types=Normal --for configmap/settings"),
      "",
    );
    assert.match(await kubectl.run("describe configmap settings"), shown);
    assert.match(
      await kubectl.run("get events --field-selector reason=Faded"),
      /Warning\s+Faded\s+configmap\/settings/,
    );
  },
);

kubectlTest(
  "kubectl get reports missing objects and unknown kinds",
  async (kubectl) => {
    assert.match(
      await kubectl.fails("get configmap gone"),
      /^Error from server \(NotFound\): configmaps "gone" not found\n$/,
    );
    assert.match(
      await kubectl.fails("get rowboats"),
      /the server doesn't have a resource type "rowboats"/,
    );
  },
);
