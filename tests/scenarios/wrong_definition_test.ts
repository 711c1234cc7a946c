import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { connect } from "node:net";
import {
  byFunction,
  type EventSource,
  perResourcePollingSource,
  pollingSource,
  watch,
  webhookSource,
} from "@coracle/operator";
import {
  ConfigMap,
  type KubernetesObject,
  Secret,
} from "@coracle/operator/kinds";
import {
  crdPresent,
  externalDependent,
  kubernetesDependent,
  Workflow,
  type WorkflowNode,
} from "@coracle/operator/workflows";
import { GraphError } from "../../workflows/graph/graph.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";
import { until } from "../support/until.ts";

const KEY = { namespace: "default", name: "a" };

const secret = () =>
  kubernetesDependent<Gadget, Secret>(Secret, {
    desired: ({ metadata: { name }, spec }) => ({
      metadata: { name },
      stringData: { value: spec.value },
    }),
  });

/** Whether the rest of the operator still does its work: the Secret follows. */
async function goesOn(fixture: OperatorFixture, value: string): Promise<void> {
  await fixture.change("a", { value });
  await fixture.until(async () => {
    const { data } = await fixture.client.find(Secret, KEY) ?? {};
    return data?.["value"] === btoa(value);
  });
}

/** An operator that collects the errors of its runs. */
function start(
  fixture: OperatorFixture,
  workflow: Workflow<Gadget>,
  sources: readonly EventSource<Gadget>[] = [],
) {
  const errors: string[] = [];
  const operator = fixture.operator();
  const controller = operator.register(Gadget, {
    reconcile() {},
    onError(_gadget, error) {
      errors.push(String(error));
    },
  }, { workflow, sources, retry: { initial: "1s", maxAttempts: Infinity } });
  return { operator, controller, errors };
}

const node = (name: string, ...dependsOn: string[]) =>
  ({ name, dependsOn, dependent: { read: () => 1 }, when: {} }) as WorkflowNode<
    KubernetesObject
  >;

scenario(
  "Invalid workflows are refused at their definition with the reason",
  // deno-lint-ignore require-await -- what a scenario is
  async () => {
    const refused: readonly (readonly [() => unknown, RegExp])[] = [
      [
        () =>
          new Workflow({}, [node("a", "c"), node("b", "a"), node("c", "b")]),
        /in a circle: received a -> c -> b -> a$/,
      ],
      [
        () => new Workflow({}, [node("self", "self")]),
        /in a circle: received self -> self$/,
      ],
      [
        () => new Workflow({}, [node("a", "nobody"), node("b")]),
        /"a" depends on a node that does not exist: received "nobody", known are a, b$/,
      ],
      [
        () =>
          new Workflow().add("a", { read: () => 1 }).add("a", {
            read: () => 2,
          }),
        /must be unique: received "a" twice$/,
      ],
    ];
    for (const [define, why] of refused) {
      assert.throws(define, (error: unknown) => {
        assert.ok(error instanceof GraphError);
        assert.match(error.message, why);
        return true;
      });
    }
    const dependent = { read: () => 1 };
    const odd: readonly (readonly [() => unknown, RegExp])[] = [
      [
        () => new Workflow().add("a", undefined as never),
        /node "a" of a workflow: its dependent needs .*read\(\).*: received undefined$/,
      ],
      [
        () => new Workflow().add("a", {} as never),
        /its dependent needs a method read\(\)/,
      ],
      [
        () => new Workflow().add("a", dependent, { readyWhen: true as never }),
        /node "a" of a workflow: "readyWhen" must be a function: received a boolean$/,
      ],
      [
        () =>
          new Workflow().add("a", dependent, { readWhen: () => true } as never),
        /node "a" of a workflow: there is no option "readWhen": did you mean "readyWhen"\?: received readWhen$/,
      ],
      [
        () => kubernetesDependent(ConfigMap, {} as never),
        /a dependent of ConfigMap: "desired" must be a function: received nothing$/,
      ],
      [
        () =>
          externalDependent({
            source: pollingSource({ name: "x", fetch: () => new Map() }),
          } as never),
        /externalDependent\(\): "desired" must be a function: received nothing$/,
      ],
      [
        () => crdPresent({ group: "x.dev", version: "v1", kind: "X" }),
        /its plural and scope must be given/,
      ],
    ];
    for (const [define, why] of odd) {
      assert.throws(define, (error: unknown) => {
        assert.ok(error instanceof TypeError);
        assert.match(error.message, why);
        return true;
      });
    }
  },
);

scenario(
  "Invalid results of dependents and conditions fail their nodes only",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add(
        "nameless",
        kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
          desired: () => ({ metadata: {}, data: {} }) as never,
        }),
      )
      .add(
        "nothing",
        kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
          desired: () => undefined as never,
        }),
      )
      .add("undecided", { read: () => 1 }, {
        readyWhen: () => "perhaps" as never,
      })
      .add("secret", secret());
    const { operator, errors } = start(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => errors.length > 0);
    assert.match(errors[0]!, /3 of 4 nodes failed/);
    assert.match(
      errors[0]!,
      /nameless: Cannot use a desired ConfigMap: it must have a name: received undefined/,
    );
    assert.match(
      errors[0]!,
      /nothing: Cannot use a desired ConfigMap: it must be an object: received undefined/,
    );
    assert.match(
      errors[0]!,
      /Cannot decide on node "undecided": "readyWhen" must answer true, false or a verdict: received string/,
    );
    await goesOn(fixture, "second");
  },
);

scenario(
  "A mapper with errors or invalid results is reported, and others continue",
  async (fixture) => {
    const answers: Record<string, unknown> = {
      throws: () => {
        throw new Error("no idea");
      },
      nothing: () => undefined,
      number: () => 5,
      numbers: () => [5, {}, null],
      right: () => ["default/a"],
    };
    const runs: string[] = [];
    const source = watch<Gadget, ConfigMap>(ConfigMap, {
      name: "mapped",
      mapper: byFunction(({ metadata: { name } }) => {
        const answer = answers[name] as (() => never) | undefined;
        return answer?.() ?? [];
      }),
    });
    const workflow = new Workflow<Gadget>().add("secret", secret());
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        runs.push(ctx.cause.type === "source" ? "source" : "other");
      },
    }, { workflow, sources: [source] });
    // What was there before the start is mapped, too.
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "throws" },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    for (const name of ["nothing", "number", "numbers"]) {
      await fixture.client.create(ConfigMap, {
        metadata: { namespace: "default", name },
      });
    }
    await fixture.settle();
    const told = fixture.log.filter(({ level, message }) =>
      level === "error" && message.startsWith("Cannot map")
    );
    for (const name of ["throws", "number", "numbers"]) {
      const line = told.find(({ fields }) =>
        fields["object"] === `default/${name}`
      );
      assert.ok(line, `nothing was told of ${name}`);
      assert.equal(line.fields["source"], "mapped");
    }
    assert.equal(runs.length, 1);
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "right" },
    });
    await fixture.until(() => runs.includes("source"));
    await goesOn(fixture, "second");
  },
);

scenario(
  "A webhook refuses a wrong signature and a body of 50 MiB, and continues",
  async (fixture) => {
    const hmac = { secret: "an open secret of this test" };
    const hook = webhookSource<Gadget>({
      name: "hook",
      check: { hmac },
      primaries: (request) => [(request.json() as { key: string }).key],
    });
    const workflow = new Workflow<Gadget>().add("secret", secret());
    let hooked = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        if (ctx.cause.source === "hook") hooked++;
      },
    }, { workflow, sources: [hook] });
    await fixture.start(operator);
    await fixture.create("a");
    await goesOn(fixture, "first");
    const post = async (body: string, secret: string) => {
      const digest = createHmac("sha256", secret).update(body).digest("hex");
      const headers = { "x-hub-signature-256": `sha256=${digest}` };
      const response = await fetch(hook.url!, {
        method: "POST",
        body,
        headers,
      });
      return `${response.status} ${(await response.text()).trim()}`;
    };
    const body = '{"key":"default/a"}';
    assert.equal(
      await post(body, "guessed"),
      "401 The signature or token is missing or wrong",
    );
    assert.match(
      await sendLarge(hook.url!, 50 * 1024 * 1024),
      /^HTTP\/1\.1 413 /,
    );
    assert.equal(hooked, 0);
    assert.equal(await post(body, hmac.secret), "202 Accepted for 1");
    await until("the hooked run", async () => {
      await fixture.settle();
      return hooked === 1;
    });
    await goesOn(fixture, "second");
  },
);

/** Sends a body without telling its length, until the server has had enough. */
function sendLarge(url: string, size: number): Promise<string> {
  const { hostname, port } = new URL(url);
  const piece = "x".repeat(64 * 1024);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `POST / HTTP/1.1\r\nhost: x\r\nx-hub-signature-256: sha256=${
          "0".repeat(64)
        }\r\ntransfer-encoding: chunked\r\n\r\n`,
      );
      let sent = 0;
      // Once the body is too long it listens first: a write to a connection that
      // was closed fails before the answer is read.
      const send = () => {
        if (sent >= size || socket.destroyed) return;
        sent += piece.length;
        const more = socket.write(
          `${piece.length.toString(16)}\r\n${piece}\r\n`,
        );
        if (sent > 2 * 1024 * 1024) setTimeout(send, 100);
        else if (more) setImmediate(send);
        else socket.once("drain", send);
      };
      send();
    });
    socket.once("data", (data) => {
      resolve(String(data));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

scenario(
  "An external system that throws or hangs is reported, and the rest continues",
  async (fixture) => {
    const answers = {
      throws: (): never => {
        throw new Error("no route to the system");
      },
      hangs: () => new Promise<never>(() => {}),
    };
    const all = pollingSource<Gadget, string>({
      name: "all",
      timeout: "2s",
      fetch: answers.hangs,
    });
    const each = perResourcePollingSource<Gadget, string>({
      name: "each",
      timeout: "2s",
      fetch: answers.throws,
    });
    const outside = (source: EventSource<Gadget, string>) =>
      externalDependent<Gadget, string>({
        source,
        desired: () => "wanted",
        create: () => assert.fail("made without knowing what there is"),
      });
    const workflow = new Workflow<Gadget>()
      .add("all", outside(all))
      .add("each", outside(each))
      .add("secret", secret());
    const { operator, errors } = start(fixture, workflow);
    await fixture.create("a");
    await fixture.start(operator);
    await fixture.until(() => errors.length > 0);
    assert.match(errors[0]!, /2 of 3 nodes failed/);
    assert.match(
      errors[0]!,
      /all: Cannot read "all": .*it did not answer within 2000 ms/,
    );
    assert.match(errors[0]!, /each: no route to the system/);
    await goesOn(fixture, "second");
    const { sources } = operator.health().controllers[0]!;
    assert.equal(sources.get("all")?.status, "unhealthy");
    assert.match(sources.get("each")?.message ?? "", /no route to the system/);
  },
);
