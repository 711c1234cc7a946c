import { fc } from "../../../support/property.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type HeldEvent,
  OwnWriteWindow,
} from "../../../../core/cache/informer/own_write_window.ts";

function change(
  resourceVersion: string,
  more: Partial<HeldEvent<string>> = {},
): HeldEvent<string> {
  return {
    type: "updated",
    resourceVersion,
    relist: false,
    previous: `before ${resourceVersion}`,
    ...more,
  };
}

test("OwnWriteWindow suppresses an echo after the response [J56]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  assert.equal(
    window.succeed(write, { resourceVersion: "10", seen: "9" }),
    undefined,
  );
  assert.equal(window.isOpen, true);
  assert.equal(window.event(change("10")), undefined);
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow suppresses an echo before the response [J62]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  assert.equal(window.event(change("10")), undefined);
  assert.equal(
    window.succeed(write, { resourceVersion: "10", seen: "10" }),
    undefined,
  );
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow takes no held event for an echo after a restart of the history", () => {
  const window = new OwnWriteWindow<string>();
  const [first, second] = [window.begin(), window.begin()];
  window.succeed(first, { resourceVersion: "10", seen: "9" });
  assert.equal(window.event(change("10")), undefined, "an echo, held back");
  window.restart();
  assert.deepEqual(window.fail(second), {
    type: "updated",
    relist: false,
    previous: "before 10",
  });
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow releases a foreign change before the echo [ExternalUpdateDuringOwnUpdateIT]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  assert.equal(window.event(change("9")), undefined);
  assert.equal(window.event(change("10")), undefined);
  assert.deepEqual(
    window.succeed(write, { resourceVersion: "10", seen: "10" }),
    {
      type: "updated",
      relist: false,
      previous: "before 9",
    },
  );
});

test("OwnWriteWindow releases a foreign change older than the cached response", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.succeed(write, {
    resourceVersion: "10",
    seen: "8",
    before: "state 8",
  });
  const { previous: _, ...stale } = change("9");
  assert.deepEqual(window.stale(stale), {
    type: "updated",
    relist: false,
    previous: "state 8",
  });
  assert.equal(window.event(change("10")), undefined);
});

test("OwnWriteWindow keeps the state before the first of several own writes", () => {
  const window = new OwnWriteWindow<string>();
  for (const version of ["10", "12"]) {
    const write = window.begin();
    const before = `state before ${version}`;
    window.succeed(write, { resourceVersion: version, seen: "8", before });
  }
  const { previous: _, ...stale } = change("9");
  assert.equal(window.stale(stale)?.previous, "state before 10");
});

test("OwnWriteWindow expects no echo of writes before a deletion", () => {
  const window = new OwnWriteWindow<string>();
  window.succeed(window.begin(), { resourceVersion: "10", seen: "8" });
  window.deleted("9");
  assert.equal(window.isOpen, true, "the write made another object");
  window.deleted("11");
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow releases a foreign change after the echo [J65]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.succeed(write, { resourceVersion: "10", seen: "9" });
  window.event(change("10"));
  assert.notEqual(window.event(change("11")), undefined);
});

test("OwnWriteWindow releases everything after a failed write [J66]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.event(change("9"));
  window.event(change("10"));
  assert.equal(window.fail(write)?.previous, "before 9");
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow never suppresses an event of a relist [OnRelistFilterIT]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.event(change("10", { relist: true }));
  assert.equal(
    window.succeed(write, { resourceVersion: "10", seen: "10" })?.relist,
    true,
  );
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow merges a change and a relist into one of a relist", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.event(change("10"));
  window.event(change("11", { relist: true }));
  assert.deepEqual(window.fail(write), {
    type: "updated",
    relist: true,
    previous: "before 10",
  });
});

test("OwnWriteWindow merges added and updated into added [J63]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.event(change("9", { type: "added", previous: undefined }));
  window.event(change("10"));
  assert.equal(window.fail(write)?.type, "added");
});

test("OwnWriteWindow waits only for writes that began before an event [J57]", () => {
  const window = new OwnWriteWindow<string>();
  const first = window.begin();
  window.event(change("9"));
  const second = window.begin();
  window.event(change("11"));
  const release = window.succeed(first, { resourceVersion: "10", seen: "11" });
  assert.equal(release?.previous, "before 9");
  assert.equal(
    window.succeed(second, { resourceVersion: "11", seen: "11" }),
    undefined,
  );
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow recognizes echoes of responses out of order", () => {
  const window = new OwnWriteWindow<string>();
  const first = window.begin();
  const second = window.begin();
  window.event(change("9"));
  window.event(change("10"));
  const seen = "10";
  assert.equal(
    window.succeed(second, { resourceVersion: "10", seen }),
    undefined,
  );
  assert.equal(
    window.succeed(first, { resourceVersion: "9", seen }),
    undefined,
  );
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow does not stay open after a write that changed nothing [J59]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.succeed(write, { resourceVersion: "8", seen: "8" });
  assert.equal(window.isOpen, false);
  const next = window.begin();
  window.succeed(next, { resourceVersion: "9", seen: "8" });
  assert.equal(window.isOpen, true);
  window.progress("9");
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow drops held events when the object is deleted [J67]", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.event(change("9"));
  window.deleted("10");
  assert.equal(window.fail(write), undefined);
  assert.equal(window.isOpen, false);
});

test("OwnWriteWindow compares versions beyond the range of numbers", () => {
  const window = new OwnWriteWindow<string>();
  const write = window.begin();
  window.succeed(write, {
    resourceVersion: "90071992547409931",
    seen: "90071992547409921",
  });
  assert.notEqual(window.event(change("90071992547409930")), undefined);
  assert.equal(window.event(change("90071992547409931")), undefined);
});

/** History of one object, in the order in which the server stored it. */
interface Step {
  readonly own: boolean;
  /** After how many further steps its event arrives. */
  readonly eventDelay: number;
  /** How many steps before it was stored the write began. */
  readonly lead: number;
  /** After how many further steps the answer arrives; own writes only. */
  readonly answerDelay: number;
}

const STEP = fc.record({
  own: fc.boolean(),
  eventDelay: fc.nat(4),
  lead: fc.nat(3),
  answerDelay: fc.nat(6),
});

interface Happening {
  readonly at: number;
  readonly run: () => void;
}

test("OwnWriteWindow releases every foreign change and no lone echo [J60]", () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 12 }), (steps: Step[]) => {
      const window = new OwnWriteWindow<string>();
      const version = (index: number) => String(98 + index);
      const untold = new Set<string>();
      let seen = "1";
      let releases = 0;
      const letThrough = (release: unknown) => {
        if (release === undefined) return;
        releases++;
        untold.clear();
      };
      const happenings: Happening[] = [];
      let lastEvent = 0;
      steps.forEach((step, index) => {
        const at = index * 10;
        lastEvent = Math.max(lastEvent + 0.01, at + step.eventDelay * 10 + 1);
        happenings.push({
          at: lastEvent,
          run() {
            const event = change(version(index));
            if (!step.own) untold.add(event.resourceVersion);
            const release = window.event(event);
            // The released event merges all that arrived.
            letThrough(release);
            seen = event.resourceVersion;
          },
        });
        if (!step.own) return;
        let write = 0;
        happenings.push({
          at: at - step.lead * 10,
          run: () => write = window.begin(),
        });
        happenings.push({
          at: at + step.answerDelay * 10 + 5,
          run() {
            const resourceVersion = version(index);
            letThrough(window.succeed(write, { resourceVersion, seen }));
          },
        });
      });
      happenings.sort((a, b) => a.at - b.at);
      for (const { run } of happenings) run();
      const foreign = steps.filter(({ own }) => !own).length;
      assert.equal(untold.size, 0, "a foreign change was swallowed");
      assert.ok(releases <= foreign, "an echo was let through alone");
      assert.equal(window.isOpen, false);
    }),
    { numRuns: 2_000 },
  );
});
