import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const PODS = "/api/v1/namespaces/default/pods";
const SMALL = { cpu: "1", memory: "500Mi" };

/** A server with a node, and functions that create and resize pods on it. */
class ResizeServer {
  readonly #server: TestServer = new TestServer({ builtin });

  stop(): void {
    this.#server.stop();
  }

  async begin(): Promise<void> {
    await this.#create("/api/v1/nodes", {
      metadata: { name: "node" },
      status: { allocatable: { cpu: "2", memory: "1Gi" } },
    });
    await this.#create("/api/v1/nodes", {
      metadata: { name: "other", labels: { "kubernetes.io/os": "windows" } },
    });
  }

  async #create(path: string, body: object): Promise<void> {
    const { status, body: answer } = await this.#server.send(
      "POST",
      path,
      body,
    );
    assert.equal(status, 201, JSON.stringify(answer));
  }

  async pod(name: string, spec: object): Promise<void> {
    const tolerations = [{ operator: "Exists" }];
    const metadata = { name, labels: { kept: "yes" } };
    await this.#create(PODS, { metadata, spec: { tolerations, ...spec } });
  }

  /** The pod after a resize, or the message of the refusal. */
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
  async resize(name: string, patch: object): Promise<any> {
    const { status, body } = await this.#server.send(
      "PATCH",
      `${PODS}/${name}/resize`,
      patch,
      { "content-type": "application/strategic-merge-patch+json" },
    );
    if (status === 200) return body;
    return `${status} ${
      body.message.replace(/^.*?(?:forbidden|invalid): /, "")
    }`;
  }
}

async function withPods(
  work: (server: ResizeServer) => Promise<void>,
): Promise<void> {
  const server = new ResizeServer();
  try {
    await server.begin();
    await work(server);
  } finally {
    server.stop();
  }
}

function on(nodeName: string | undefined, requests: object = SMALL): object {
  return {
    nodeName,
    containers: [{ name: "c", image: "i", resources: { requests } }],
  };
}

function requesting(requests: object): object {
  return { spec: { containers: [{ name: "c", resources: { requests } }] } };
}

test("A resize changes the resources of a pod and nothing else", async () => {
  await withPods(async (server) => {
    await server.pod("a", on("node"));
    const { metadata, spec } = await server.resize("a", {
      metadata: { labels: { kept: "no" } },
      spec: {
        containers: [{
          name: "c",
          image: "other",
          resources: { requests: { cpu: "1500m" } },
        }],
      },
    });
    assert.deepEqual(metadata.labels, { kept: "yes" });
    assert.equal(metadata.generation, 2);
    assert.equal(spec.containers[0].image, "i");
    assert.deepEqual(spec.containers[0].resources, {
      requests: { cpu: "1500m", memory: "500Mi" },
    });
  });
});

test("A resize is refused where the node has no room or another system", async () => {
  await withPods(async (server) => {
    for (const name of ["node", "other", "none"]) {
      await server.pod(name, on(name));
    }
    await server.pod("unbound", on(undefined));
    const large = requesting({ cpu: "3500m", memory: "2Gi" });
    assert.equal(
      await server.resize("node", large),
      "403 node didn't have enough allocatable resources: cpu, requested: 3500, allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824",
    );
    assert.equal(
      await server.resize("other", large),
      '403 pod resize is only supported on linux nodes, node "other" is "windows"',
    );
    assert.equal(
      await server.resize("none", large),
      '403 node "none" not found',
    );
    const { metadata } = await server.resize("unbound", large);
    assert.equal(metadata.generation, 2);
  });
});

test("A resize keeps the class, the containers and all but CPU and memory", async () => {
  await withPods(async (server) => {
    await server.pod("a", on("node"));
    await server.pod("g", {
      nodeName: "node",
      containers: [{ name: "c", image: "i", resources: { limits: SMALL } }],
    });
    assert.equal(
      await server.resize("g", requesting({ cpu: "900m" })),
      '422 spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing',
    );
    assert.equal(
      await server.resize("a", requesting({ cpu: null })),
      "422 spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
    );
    assert.equal(
      await server.resize("a", requesting({ "ephemeral-storage": "1Gi" })),
      "422 spec: Forbidden: only cpu and memory resources are mutable",
    );
    assert.equal(
      await server.resize("a", {
        spec: { containers: [{ name: "d", image: "i" }] },
      }),
      "422 spec.containers: Forbidden: containers may not be added or removed on resize",
    );
  });
});

test("A resize of a whole pod needs a feature that its node declares", async () => {
  await withPods(async (server) => {
    await server.pod("a", on("node"));
    const patch = { spec: { resources: { requests: { cpu: "1600m" } } } };
    assert.equal(
      await server.resize("a", patch),
      '403 pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "node"',
    );
  });
});
