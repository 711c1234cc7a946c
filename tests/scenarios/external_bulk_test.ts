import assert from "node:assert/strict";
import { perResourcePollingSource } from "@coracle/operator";
import {
  configMapState,
  externalBulkDependent,
  type ExternalState,
  Workflow,
} from "@coracle/operator/workflows";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** A mailbox in a system that knows nothing of Kubernetes. */
interface Mailbox {
  readonly id: string;
  readonly owner: string;
  readonly slot: string;
  readonly value: string;
}

/** Desired state of a mailbox. */
type Desired = Pick<Mailbox, "slot" | "value">;

/** The outside system, which gives ids of its own. */
class Mailboxes {
  readonly all: Map<string, Mailbox> = new Map();
  created = 0;

  create({ slot, value }: Desired, owner: string): Promise<Mailbox> {
    const box = { id: `id-${++this.created}`, owner, slot, value };
    this.all.set(box.id, box);
    return Promise.resolve(box);
  }

  /** Existing mailboxes, as `slot=value`. */
  get text(): string {
    return [...this.all.values()].map(({ slot, value }) => `${slot}=${value}`)
      .toSorted().join();
  }

  /** Bulk dependent with the number of the spec. */
  dependent(
    more: Partial<
      Parameters<typeof externalBulkDependent<Gadget, Desired, Mailbox>>[0]
    >,
  ) {
    return externalBulkDependent<Gadget, Desired, Mailbox>({
      source: perResourcePollingSource<Gadget, Mailbox>({
        name: "mailboxes",
        id: ({ id }) => id,
        fetch: ({ metadata: { name } }) =>
          [...this.all.values()].filter(({ owner }) => owner === name),
      }),
      desired: ({ spec }) =>
        new Map(
          Array.from({ length: spec.numberOfExecutions ?? 0 }, (_, index) => {
            const slot = `slot-${index}`;
            return [slot, { slot, value: spec.value }];
          }),
        ),
      create: (wish, { metadata: { name } }) => this.create(wish, name),
      update: (wish, actual) => {
        const box = { ...actual, ...wish };
        this.all.set(actual.id, box);
        return Promise.resolve(box);
      },
      delete: ({ id }) => {
        this.all.delete(id);
        return Promise.resolve();
      },
      ...more,
    });
  }
}

function start(
  fixture: OperatorFixture,
  dependent: ReturnType<Mailboxes["dependent"]>,
) {
  const workflow = new Workflow<Gadget>().add("boxes", dependent);
  const operator = fixture.operator();
  operator.register(Gadget, { reconcile() {} }, { workflow });
  return operator;
}

scenario(
  "External resources follow the number in the spec and its changes [BulkExternalDependentIT]",
  async (fixture) => {
    const boxes = new Mailboxes();
    const operator = start(
      fixture,
      boxes.dependent({ key: ({ slot }) => slot }),
    );
    await fixture.start(operator);
    const text = (count: number, value: string) =>
      Array.from({ length: count }, (_, index) => `slot-${index}=${value}`)
        .join();
    await fixture.create("a", { numberOfExecutions: 3 });
    await fixture.until(() => boxes.text === text(3, "first"));
    await fixture.change("a", { numberOfExecutions: 1 });
    await fixture.until(() => boxes.text === text(1, "first"));
    await fixture.change("a", { numberOfExecutions: 5, value: "changed" });
    await fixture.until(() => boxes.text === text(5, "changed"));
    await fixture.advance(30_000);
    assert.equal(boxes.created, 7, "none is made twice");
    await fixture.change("a", { numberOfExecutions: 0 });
    await fixture.until(() => boxes.text === "");
    await fixture.change("a", { numberOfExecutions: 2 });
    await fixture.until(() => boxes.all.size === 2);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(boxes.text, "");
  },
);

/** The ids of many resources, wherever they are kept. */
async function playWithState(
  fixture: OperatorFixture,
  store: () => ExternalState<Gadget>,
): Promise<void> {
  const boxes = new Mailboxes();
  const make = () =>
    start(
      fixture,
      boxes.dependent({ state: { store: store(), id: ({ id }) => id } }),
    );
  const operator = make();
  await fixture.start(operator);
  await fixture.create("a", { numberOfExecutions: 3 });
  await fixture.until(() => boxes.all.size === 3);
  await fixture.change("a", { numberOfExecutions: 2, value: "changed" });
  await fixture.until(() => boxes.text === "slot-0=changed,slot-1=changed");
  await fixture.done(operator.stop());
  const next = make();
  await fixture.start(next);
  await fixture.change("a", { numberOfExecutions: 4, value: "again" });
  await fixture.until(() => boxes.all.size === 4);
  await fixture.advance(30_000);
  assert.equal(boxes.created, 5, "what has an id is known after a restart");
  await fixture.remove("a");
  await fixture.until(async () => await fixture.gadget("a") === undefined);
  assert.equal(boxes.text, "");
}

scenario(
  "Ids of external resources in a ConfigMap survive a restart [ExternalStateBulkIT]",
  async (fixture) => {
    await playWithState(fixture, () => configMapState("-boxes"));
  },
);
