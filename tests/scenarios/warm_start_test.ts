import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  type ControllerOptions,
  noUpdate,
  type Operator,
  type OperatorOptions,
} from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { byOwner, watch } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";

const MINUTE = 60_000;

/** Restarts of one operator, which notes its runs. */
class Restarts {
  readonly path: string = join(temporaryFolder(), "snapshots");
  readonly #fixture: OperatorFixture;
  readonly #options: ControllerOptions<Gadget>;
  #operator: Operator | undefined;
  /** Names and causes of the runs since the last start, in the order of names. */
  #runs: string[] = [];

  constructor(
    fixture: OperatorFixture,
    options: ControllerOptions<Gadget> = {},
  ) {
    this.#fixture = fixture;
    this.#options = {
      sources: [watch(ConfigMap, { mapper: byOwner() })],
      maxInterval: "10m",
      ...options,
    };
  }

  get runs(): readonly string[] {
    return this.#runs.toSorted();
  }

  /** Number of lists of whole collections, as pages or as streams. */
  get lists(): number {
    return this.#fixture.requests.filter(({ method, name, target }) => {
      const isWatch = target.includes("watch=true");
      return method === "GET" && name === "" &&
        /(gadgets|configmaps|secrets)(\?|$)/.test(target) &&
        (isWatch
          ? target.includes("sendInitialEvents=true")
          : !/[?&]limit=1(&|$)/.test(target));
    }).length;
  }

  async start(
    snapshot: Partial<NonNullable<OperatorOptions["cache"]>["snapshot"]> = {},
    options: OperatorOptions = {},
  ): Promise<void> {
    const runs: string[] = this.#runs = [];
    const operator = this.#operator = this.#fixture.operator({
      ...options,
      cache: { snapshot: { path: this.path, ...snapshot } },
    });
    operator.register(Gadget, {
      reconcile({ metadata: { name = "" } }, { cause }) {
        runs.push(`${name} ${cause.type}`);
        if (name === "failing") throw new Error("as it is meant to");
        return name === "planned"
          ? noUpdate().rescheduleAfter("1d")
          : undefined;
      },
    }, this.#options);
    await this.#fixture.start(operator);
    await this.#fixture.settle();
  }

  async stop(): Promise<void> {
    await this.#fixture.done((this.#operator as Operator).stop());
  }
}

async function createOwned(
  { client }: OperatorFixture,
  name: string,
  owner: Gadget,
): Promise<void> {
  const { uid = "" } = owner.metadata;
  await client.create(ConfigMap, {
    metadata: {
      name,
      namespace: "default",
      ownerReferences: [{
        apiVersion: "sample.coracle.dev/v1",
        kind: "Gadget",
        name: owner.metadata.name as string,
        uid,
      }],
    },
    data: { count: "1" },
  });
}

scenario(
  "Warm start lists nothing and runs what changed or waited",
  async (fixture) => {
    const operator = new Restarts(fixture);
    for (const name of ["changed", "failing", "idle", "planned"]) {
      await fixture.create(name);
    }
    const owners = ["owner", "former"].map((name) => fixture.create(name));
    for (const owner of owners) {
      await createOwned(
        fixture,
        `of-${(await owner).metadata.name}`,
        await owner,
      );
    }
    await operator.start();
    await fixture.until(() => operator.runs.length >= 6);
    await operator.stop();
    const before = operator.lists;
    await fixture.change("changed", { value: "second" });
    await fixture.create("new");
    const key = { namespace: "default", name: "of-owner" };
    await fixture.client.patch(ConfigMap, key, { data: { count: "2" } });
    await fixture.client.delete(ConfigMap, { ...key, name: "of-former" });
    await operator.start();
    assert.equal(operator.lists, before);
    assert.deepEqual(
      new Set(operator.runs.map((run) => run.split(" ")[0])),
      new Set([
        ...["changed", "failing", "former", "new", "owner", "planned"],
      ]),
    );
  },
  { embedded: "its clock runs ahead of that of a real server" },
);

scenario(
  "Warm start keeps the interval of objects that do not run",
  async (fixture) => {
    const operator = new Restarts(fixture);
    await fixture.create("idle");
    await operator.start();
    await fixture.until(() => operator.runs.length > 0);
    await operator.stop();
    await operator.start();
    assert.deepEqual(operator.runs, []);
    await fixture.advance(10 * MINUTE);
    assert.deepEqual([...new Set(operator.runs)], ["idle interval"]);
  },
);

scenario(
  "Warm start runs all objects with resync or an election",
  async (fixture) => {
    const operator = new Restarts(fixture);
    await fixture.create("idle");
    await operator.start();
    await fixture.until(() => operator.runs.length > 0);
    await operator.stop();
    const before = operator.lists;
    await operator.start({ resync: true });
    await fixture.until(() => operator.runs.length > 0);
    await operator.stop();
    const leaderElection = { name: "warm", namespace: "default" };
    await operator.start({}, { leaderElection });
    await fixture.until(() => operator.runs.length > 0);
    assert.equal(operator.lists, before);
  },
  { embedded: "its clock runs ahead of that of a real server" },
);

scenario(
  "Snapshot never has Secrets, whose lists let all objects run",
  async (fixture) => {
    const operator = new Restarts(fixture, { sources: [watch(Secret)] });
    await fixture.create("idle");
    await operator.start();
    await fixture.until(() => operator.runs.length > 0);
    await operator.stop();
    const names = readdirSync(operator.path);
    assert.equal(names.length, 1);
    assert.match(names[0] ?? "", /^gadget_/);
    await operator.start();
    await fixture.until(() => operator.runs.length > 0);
  },
);

scenario("Snapshot never has the kinds that are excluded", async (fixture) => {
  const operator = new Restarts(fixture);
  await fixture.create("idle");
  await operator.start({ exclude: ["v1 ConfigMap", Gadget] });
  await operator.stop();
  assert.deepEqual(readdirSync(operator.path), []);
});

scenario(
  "Snapshot that cannot be written does not keep an operator from work",
  async (fixture) => {
    const operator = new Restarts(fixture);
    await fixture.create("idle");
    await operator.start({ path: "/dev/null/snapshots" });
    await fixture.until(() => operator.runs.length > 0);
    assert.ok(
      fixture.log.some(({ level, message }) =>
        level === "error" && message.includes("without snapshots")
      ),
    );
  },
);
