import assert from "node:assert/strict";
import { kubectlTest } from "../../support/kubectl_test_case.ts";

const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 1
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
      - { name: web, image: "nginx:1" }
      - { name: log, image: "log:1" }
`;

kubectlTest(
  "kubectl label and annotate set, refuse, overwrite and remove",
  async (kubectl) => {
    await kubectl.run("create configmap settings --from-literal=a=b");
    const labels = () =>
      kubectl.run("get configmap settings -o jsonpath={.metadata.labels}");
    await kubectl.run("label configmap settings tier=front");
    assert.match(
      await kubectl.fails("label configmap settings tier=back"),
      /'tier' already has a value \(front\), and --overwrite is false/,
    );
    await kubectl.run("label configmap settings tier=back --overwrite");
    assert.equal(await labels(), '{"tier":"back"}');
    await kubectl.run("label configmap settings tier-");
    assert.equal(await labels(), "");
    await kubectl.run("annotate configmap settings note=hello");
    assert.equal(
      await kubectl.run(
        "get configmap settings -o jsonpath={.metadata.annotations.note}",
      ),
      "hello",
    );
    assert.match(
      await kubectl.fails("annotate configmap settings note=bye"),
      /--overwrite is false but found the following declared annotation\(s\): 'note' already has a value \(hello\)/,
    );
    await kubectl.run("annotate configmap settings note=bye --overwrite");
    await kubectl.run("annotate configmap settings note-");
    assert.equal(
      await kubectl.run(
        "get configmap settings -o jsonpath={.metadata.annotations}",
      ),
      "",
    );
    assert.match(
      await kubectl.fails("label configmap settings tier=not_-"),
      /a valid label must be an empty string or consist of alphanumeric/,
    );
  },
);

kubectlTest(
  "kubectl patch supports merge, JSON and strategic merge patches",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "apply -f -");
    await kubectl.run(
      "create configmap settings --from-literal=a=1 --from-literal=b=2",
    );
    await kubectl.run(
      "patch configmap settings --type merge -p",
      '{"data":{"a":null,"c":"3"}}',
    );
    await kubectl.run(
      "patch configmap settings --type json -p",
      '[{"op":"test","path":"/data/b","value":"2"},{"op":"move","from":"/data/b","path":"/data/d"}]',
    );
    assert.equal(
      await kubectl.run("get configmap settings -o jsonpath={.data}"),
      '{"c":"3","d":"2"}',
    );
    assert.match(
      await kubectl.fails(
        "patch configmap settings --type json -p",
        '[{"op":"test","path":"/data/c","value":"4"}]',
      ),
      /invalid/i,
    );
    await kubectl.run(
      "patch deploy web -p",
      '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:2"}]}}}}',
    );
    assert.equal(
      await kubectl.run(
        "get deploy web -o",
        "jsonpath={.spec.template.spec.containers[*].image}",
      ),
      "nginx:2 log:1",
    );
    await kubectl.run(
      "patch deploy web --type strategic -p",
      '{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"log"}]}}}}',
    );
    assert.equal(
      await kubectl.run(
        "get deploy web -o",
        "jsonpath={.spec.template.spec.containers[*].name}",
      ),
      "web",
    );
  },
);

kubectlTest(
  "kubectl with --dry-run=server changes nothing and shows the result",
  async (kubectl) => {
    const dryRun = "--dry-run=server";
    const said = /\(server dry run\)\n$/;
    assert.match(await kubectl.feed(DEPLOYMENT, `create ${dryRun} -f -`), said);
    assert.match(await kubectl.fails("get deploy web"), /not found/);
    await kubectl.feed(DEPLOYMENT, "create -f -");
    const spec = "get deploy web -o jsonpath={.spec}{.metadata.labels}";
    const before = await kubectl.run(spec);
    assert.equal(
      await kubectl.run(
        `patch deploy web ${dryRun} -o jsonpath={.spec.replicas} -p`,
        '{"spec":{"replicas":7}}',
      ),
      "7",
    );
    for (
      const command of [
        "label deploy web tier=front",
        "annotate deploy web note=hello",
        "set image deploy/web web=nginx:9",
      ]
    ) assert.match(await kubectl.run(`${command} ${dryRun}`), said);
    await kubectl.run(`scale deploy web --replicas=9 ${dryRun}`);
    assert.match(
      await kubectl.feed(
        DEPLOYMENT.replace("nginx:1", "nginx:8"),
        `replace ${dryRun} -f -`,
      ),
      said,
    );
    assert.match(await kubectl.run(`delete deploy web ${dryRun}`), said);
    assert.equal(await kubectl.run(spec), before);
  },
);

kubectlTest(
  "kubectl patch reaches the status only through its subresource",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "apply -f -");
    const status =
      '{"status":{"conditions":[{"type":"Tested","status":"True"}]}}';
    const conditions = () =>
      kubectl.run("get deploy web -o", "jsonpath={.status.conditions[*].type}");
    await kubectl.run("patch deploy web --type merge -p", status);
    assert.doesNotMatch(await conditions(), /Tested/);
    await kubectl.run("patch deploy web --subresource=status -p", status);
    assert.match(await conditions(), /Tested/);
  },
);

kubectlTest(
  "kubectl scale changes replicas and checks its preconditions",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "apply -f -");
    await kubectl.run("scale deploy web --replicas=3");
    assert.equal(
      await kubectl.run("get deploy web -o jsonpath={.spec.replicas}"),
      "3",
    );
    assert.match(
      await kubectl.fails("scale deploy web --current-replicas=1 --replicas=2"),
      /Expected replicas to be 1, was 3/,
    );
    const generation = await kubectl.run(
      "get deploy web -o jsonpath={.metadata.generation}",
    );
    assert.equal(generation, "2");
  },
);

kubectlTest(
  "kubectl set image, create and expose work on existing objects",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "apply -f -");
    await kubectl.run("set image deploy/web web=nginx:3");
    await kubectl.run("expose deploy web --port=80");
    assert.equal(
      await kubectl.run("get service web -o jsonpath={.spec.selector}"),
      '{"app":"web"}',
    );
    await kubectl.run(
      "create secret generic keys --from-literal=password=hunter2",
    );
    assert.equal(
      await kubectl.run("get secret keys -o jsonpath={.data.password}"),
      btoa("hunter2"),
    );
  },
);

kubectlTest(
  "kubectl replace with an old version is a conflict",
  async (kubectl) => {
    await kubectl.run("create configmap settings --from-literal=a=1");
    const old = await kubectl.run("get configmap settings -o json");
    await kubectl.run("label configmap settings changed=yes");
    assert.match(
      await kubectl.feedFails(old, "replace -f -"),
      /Operation cannot be fulfilled on configmaps "settings": the object has been modified/,
    );
  },
);

kubectlTest(
  "kubectl replace --force deletes and creates again",
  async (kubectl) => {
    await kubectl.feed(DEPLOYMENT, "create -f -");
    const uid = "get deploy web -o jsonpath={.metadata.uid}";
    const before = await kubectl.run(uid);
    assert.match(
      await kubectl.feed(DEPLOYMENT, "replace --force -f -"),
      /^deployment\.apps "web" deleted\ndeployment\.apps\/web replaced\n$/,
    );
    assert.notEqual(await kubectl.run(uid), before);
  },
);
