import assert from "node:assert/strict";
import { every, onEvents } from "../../../workflows/conditions/cadence.ts";
import {
  type Condition,
  isReady,
} from "../../../workflows/conditions/condition.ts";
import type { Notice } from "../../../workflows/conditions/notifier.ts";
import {
  Failed,
  Stalled,
  Waiting,
} from "../../../workflows/conditions/outcome.ts";
import type { Step } from "../../../workflows/conditions/pass_step.ts";
import { lintStatus } from "../../../workflows/conditions/status_lint.ts";
import {
  persistentRetry,
  summarized,
} from "../../../workflows/conditions/summarized.ts";
import type { SummarizedDefinition } from "../../../workflows/conditions/summarized_definition.ts";
import { inboundSource } from "../../../sources/inbound_source.ts";
import type { OperatorCase } from "../../support/operator_case.ts";
import { scenario } from "../../support/operator_case.ts";
import { Release } from "../../support/release_kind.ts";

const KEY = { namespace: "default", name: "web" };
const REQUESTED_AT = "reconcile.coracle.dev/requestedAt";

const FETCHED: Partial<SummarizedDefinition<Release>> = {
  rolls: [{
    target: "Ready",
    of: ["FetchFailed", "Stored"],
    abnormal: ["FetchFailed"],
  }],
};

/** Runs steps as a reconciler over one release, which is made, too. */
async function play(
  one: OperatorCase,
  steps: readonly Step<Release>[],
  definition: Partial<SummarizedDefinition<Release>> = {},
): Promise<void> {
  await one.install(Release);
  const operator = one.operator();
  const { clock } = one;
  operator.register(
    Release,
    summarized<Release>(
      Release,
      { cadence: () => every("1m"), clock, ...definition },
      steps,
    ),
    {
      retry: { ...persistentRetry, jitter: 0 },
      requestAnnotations: [REQUESTED_AT],
      sources: [nudges],
    },
  );
  await one.start(operator);
  await one.client.create(Release, { metadata: KEY, spec: { version: "1" } });
  await one.settle();
}

/** By which a test asks for a run. */
let nudges = inboundSource<Release>("nudges");

function releaseScenario(
  title: string,
  body: (one: OperatorCase) => Promise<void>,
): void {
  scenario(title, async (one) => {
    nudges = inboundSource<Release>("nudges");
    await body(one);
  });
}

async function read(one: OperatorCase): Promise<Release> {
  return await one.client.get(Release, KEY);
}

/** Ready, as `Status Reason: message`. */
async function ready(one: OperatorCase): Promise<string> {
  return text(await read(one), "Ready");
}

function text(object: Release, type: string): string {
  const found = object.status?.conditions?.find((one) => one.type === type);
  return found === undefined
    ? "none"
    : `${found.status} ${found.reason}: ${found.message}`;
}

function types(object: Release): string[] {
  return (object.status?.conditions ?? []).map(({ type }) => type);
}

/** What was written to the release since `from`, by place. */
function writes(one: OperatorCase, from = 0): number {
  return one.requests.slice(from).filter(({ verb, resource }) =>
    verb === "patch" && resource === "releases"
  ).length;
}

async function events(one: OperatorCase): Promise<string[]> {
  const { Event } = await import("../../../core/kinds/core_v1.ts");
  const { items } = await one.client.list(Event, { namespace: "default" });
  return items
    .filter(({ involvedObject }) => involvedObject.kind === "Release")
    .map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
    .toSorted();
}

releaseScenario(
  "summarized ends a success with Ready, and the generation observed [F1]",
  async (one) => {
    await play(one, [() => {}]);
    const object = await read(one);
    assert.equal(
      text(object, "Ready"),
      "True Succeeded: Everything is as asked for",
    );
    assert.deepEqual(types(object), ["Ready"]);
    assert.equal(object.status?.observedGeneration, 1);
    assert.deepEqual(lintStatus(object), []);
    const from = one.requests.length;
    await one.advance(60_000 * 3);
    assert.equal(writes(one, from), 0, "nothing changed, nothing is written");
  },
);

releaseScenario(
  "summarized says Reconciling before slow work, and only the once",
  async (one) => {
    const seen: Release[] = [];
    await play(one, [async () => {
      seen.push(await read(one));
    }]);
    const [first] = seen;
    assert.equal(
      text(first!, "Reconciling"),
      "True Progressing: Working towards generation 1",
    );
    assert.equal(
      text(first!, "Ready"),
      "Unknown Progressing: Working towards generation 1",
    );
    assert.deepEqual(lintStatus(first!, { inProgress: true }), []);
    await one.advance(60_000);
    assert.deepEqual(types(seen[1]!), ["Ready"], "nothing is new");
  },
);

releaseScenario(
  "A failure under a condition of its own is what Ready says, until it is over [F14]",
  async (one) => {
    let broken = true;
    await play(one, [async (pass) => {
      await pass.failing({ type: "FetchFailed", reason: "Unreachable" }, () => {
        if (broken) throw new Error("no route to https://host/x?token=abc");
      });
      pass.set({
        type: "Stored",
        status: "True",
        reason: "Stored",
        message: "kept",
      });
    }], FETCHED);
    const failing = await read(one);
    assert.equal(
      text(failing, "Ready"),
      "False Unreachable: no route to https://host/x",
    );
    assert.equal(
      text(failing, "Reconciling"),
      "True ProgressingWithRetry: Working towards generation 1",
    );
    assert.equal(failing.status?.observedGeneration, undefined);
    assert.deepEqual(lintStatus(failing, { abnormal: ["FetchFailed"] }), []);
    await one.until(async () => (await events(one)).length > 0);
    assert.deepEqual(await events(one), [
      "Warning Unreachable: no route to https://host/x",
    ]);

    const from = one.requests.length;
    await one.advance(750);
    assert.equal(writes(one, from), 0, "the same failure is written once");
    broken = false;
    await one.advance(1_500);
    assert.equal(await ready(one), "True Stored: kept");
    assert.deepEqual(types(await read(one)), ["Ready", "Stored"]);
  },
);

releaseScenario(
  "Stalled is not tried again before the object changes [F5]",
  async (one) => {
    let runs = 0;
    await play(one, [({ object }) => {
      runs++;
      if (object.spec.version === "1") {
        throw new Stalled("BadVersion", "1 is not to be had");
      }
    }]);
    const object = await read(one);
    assert.equal(
      text(object, "Stalled"),
      "True BadVersion: 1 is not to be had",
    );
    assert.equal(text(object, "Ready"), "False BadVersion: 1 is not to be had");
    assert.equal(object.status?.observedGeneration, 1);
    assert.deepEqual(lintStatus(object), []);
    await one.advance(3_600_000);
    assert.equal(runs, 1);
    await one.client.patch(Release, KEY, { spec: { version: "2" } });
    await one.settle();
    assert.equal(
      await ready(one),
      "True Succeeded: Everything is as asked for",
    );
    assert.deepEqual(types(await read(one)), ["Ready"]);
  },
);

releaseScenario(
  "Waiting comes back when it says, and is no failure [F6]",
  async (one) => {
    let runs = 0;
    await play(one, [() => {
      if (++runs < 3) {
        throw new Waiting("DependencyNotReady", "db is not ready", {
          after: 30_000,
        });
      }
    }]);
    assert.equal(await ready(one), "False DependencyNotReady: db is not ready");
    assert(one.log.every(({ level }) => level !== "warn" && level !== "error"));
    await one.advance(29_000);
    assert.equal(runs, 1);
    await one.advance(1_000);
    assert.equal(runs, 2);
    await one.advance(30_000);
    assert(isReady((await read(one)).status!.conditions!));
  },
);

releaseScenario(
  "Waiting without a delay waits for the interval though Ready is False [X7]",
  async (one) => {
    let runs = 0;
    await play(one, [() => {
      runs++;
      throw new Waiting("NotYet", "in a while");
    }]);
    await one.advance(59_000);
    assert.equal(runs, 1, "no failure, no retry");
    await one.advance(1_000);
    assert.equal(runs, 2);
    assert.equal(await ready(one), "False NotYet: in a while");
  },
);

releaseScenario(
  "An error under no name is Failed, and is tried for ever [F7]",
  async (one) => {
    let runs = 0;
    await play(one, [() => {
      runs++;
      throw new RangeError("out of paper");
    }]);
    assert.equal(await ready(one), "False Failed: out of paper");
    await one.advance(8 * 3_600_000);
    assert(runs > 30 && runs < 60, `with pauses of up to 15 minutes: ${runs}`);
  },
);

releaseScenario(
  "A pace that cannot be read stalls the object, behind what the steps say [F5]",
  async (one) => {
    let error: Error | undefined;
    await play(one, [() => {
      if (error !== undefined) throw error;
    }], {
      cadence: ({ spec }) => every(spec.version),
    });
    assert.match(await ready(one), /^False InvalidCadence: .* received "1"$/);
    error = new Stalled("Other", "more important");
    await one.client.patch(Release, KEY, { spec: { version: "2" } });
    await one.until(async () =>
      await ready(one) === "False Other: more important"
    );
    error = undefined;
    await one.client.patch(Release, KEY, { spec: { version: "3m" } });
    await one.until(async () => (await ready(one)).startsWith("True"));
  },
);

releaseScenario(
  "A harmless failure ends the pass in peace [F8]",
  async (one) => {
    await play(one, [() => {
      throw new Failed("NothingToDo", "as it was", {
        harmless: true,
        event: "None",
      });
    }]);
    const object = await read(one);
    assert.deepEqual(types(object), ["Ready"]);
    assert.equal(object.status?.observedGeneration, 1);
    assert.deepEqual(await events(one), []);
  },
);

releaseScenario(
  "A step that asks for another run ends the pass, which comes at once [F4]",
  async (one) => {
    const calls: string[] = [];
    await play(one, [
      () => {
        calls.push("first");
        return calls.length === 1 ? "requeue" : "success";
      },
      () => {
        calls.push("second");
      },
    ], { cadence: () => onEvents() });
    await one.advance(1);
    assert.deepEqual(calls, ["first", "first", "second"]);
    assert(isReady((await read(one)).status!.conditions!));
  },
);

releaseScenario("A gate that is False speaks for Ready [F18]", async (one) => {
  await play(one, [(pass) => {
    pass.set({
      type: "Verified",
      status: "False",
      reason: "NoSignature",
      message: "unsigned",
    });
    pass.set({ type: "Stored", status: "True", reason: "Stored" });
  }], { ...FETCHED, gates: ["Verified"] });
  assert.equal(await ready(one), "False NoSignature: unsigned");
});

releaseScenario(
  "A success that leaves Ready False is a failure, where the cadence says so [F16]",
  async (one) => {
    let runs = 0;
    await play(one, [(pass) => {
      runs++;
      pass.set({ type: "Stored", status: "False", reason: "NotYet" });
    }], FETCHED);
    await one.advance(750);
    assert.equal(runs, 2);
    assert.equal(await ready(one), "False NotYet: ");
  },
);

releaseScenario(
  "A request by annotation is answered once, and its token remembered [F13]",
  async (one) => {
    const asked: boolean[] = [];
    const forced: boolean[] = [];
    await play(one, [(pass) => {
      asked.push(pass.requested);
      forced.push(pass.forced);
    }]);
    const ask = async (token: string, force = false) => {
      const annotations = {
        [REQUESTED_AT]: token,
        ...(force && { "reconcile.coracle.dev/forceAt": token }),
      };
      await one.client.patch(Release, KEY, { metadata: { annotations } });
      await one.settle();
    };
    await ask("now");
    await ask("now");
    assert.deepEqual(asked, [false, true]);
    assert.equal((await read(one)).status?.lastHandledReconcileAt, "now");
    await ask(" ", true);
    assert.deepEqual(forced, [false, false, true]);
    const { status } = await read(one);
    assert.equal(status?.lastHandledReconcileAt, " ");
    assert.equal(status?.lastHandledForceAt, " ");
    await one.advance(60_000);
    assert.deepEqual(forced, [false, false, true, false]);
  },
);

releaseScenario(
  "A suspended object is left alone, and taken up again",
  async (one) => {
    let runs = 0;
    await play(one, [() => {
      runs++;
    }], { suspended: ({ spec }) => spec.suspend === true });
    await one.client.patch(Release, KEY, {
      spec: { suspend: true, version: "2" },
    });
    await one.advance(3_600_000);
    assert.equal(runs, 1);
    const object = await read(one);
    assert.equal(object.status?.observedGeneration, 1, "nobody has looked");
    await one.client.patch(Release, KEY, { spec: { suspend: false } });
    await one.settle();
    assert.equal(runs, 2);
    assert.equal((await read(one)).status?.observedGeneration, 3);
  },
);

releaseScenario(
  "A change of the object gives up waiting, without an error or a word [F42]",
  async (one) => {
    const reasons: unknown[] = [];
    await play(one, [async (pass) => {
      if (pass.object.spec.version !== "1") return;
      await new Promise((_resolve, reject) => {
        pass.waitSignal.addEventListener("abort", () => {
          reasons.push(pass.waitSignal.reason);
          reject(pass.waitSignal.reason);
        });
      });
    }]);
    await one.client.patch(Release, KEY, { spec: { version: "2" } });
    await one.settle();
    assert.match(
      String(reasons[0]),
      /another one is asked for: received modified/,
    );
    assert(isReady((await read(one)).status!.conditions!));
    assert.deepEqual(await events(one), []);
    assert(one.log.every(({ level }) => level !== "warn" && level !== "error"));
  },
);

releaseScenario(
  "A pass that a stop ends writes nothing about it",
  async (one) => {
    await play(one, [(pass) =>
      new Promise((_resolve, reject) => {
        pass.signal.addEventListener("abort", () => reject(pass.signal.reason));
      })]);
    const before = await read(one);
    await one.stop();
    assert.equal(
      text(before, "Ready"),
      "Unknown Progressing: Working towards generation 1",
    );
  },
);

releaseScenario(
  "News is told once: a new revision, the end of a failure, and nothing else [F44]",
  async (one) => {
    let [revision, broken] = ["a", false];
    const notices: Notice[] = [];
    await play(one, [async (pass) => {
      await pass.failing({ type: "FetchFailed", reason: "Unreachable" }, () => {
        if (broken) throw new Failed("Timeout", "too slow", { notify: false });
      });
      pass.object.status!.revision = revision;
      pass.set({ type: "Stored", status: "True", reason: "Stored" });
    }], {
      ...FETCHED,
      news: {
        revision: ({ status }) => status?.revision,
        failures: ["FetchFailed"],
      },
      notifier: { notify: (_object, notice) => void notices.push(notice) },
    });
    await one.until(async () => (await events(one)).length > 0);
    assert.deepEqual(await events(one), ["Normal NewArtifact: Has a"]);
    await one.advance(120_000);
    assert.equal(notices.length, 1, "no change, no event");
    [revision, broken] = ["b", true];
    await one.advance(60_000);
    assert.deepEqual(notices.map(({ reason }) => reason), [
      "NewArtifact",
      "Timeout",
    ]);
    [revision, broken] = ["a", false];
    await one.advance(1_000);
    const told = async (event: string) =>
      await one.until(async () => (await events(one)).includes(event));
    await told("Normal Succeeded: Has a");
    revision = "b";
    await one.advance(60_000);
    await told("Normal NewArtifact: Has b");
    assert.deepEqual(notices.map(({ reason }) => reason), [
      "NewArtifact",
      "Timeout",
      "Succeeded",
      "NewArtifact",
    ]);
  },
);

releaseScenario(
  "Two conditions are summed up apart, and only Ready fails the pass [F17]",
  async (one) => {
    let runs = 0;
    await play(one, [(pass) => {
      runs++;
      pass.set({ type: "Scanned", status: "False", reason: "Old" });
      pass.set({ type: "Stored", status: "True", reason: "Stored" });
    }], {
      rolls: [
        { target: "Ready", of: ["Stored"] },
        { target: "Healthy", of: ["Scanned"] },
      ],
    });
    await one.advance(59_000);
    assert.equal(runs, 1);
    const object = await read(one);
    assert.equal(text(object, "Ready"), "True Stored: ");
    assert.equal(text(object, "Healthy"), "False Old: ");
  },
);

releaseScenario(
  "A condition of somebody else survives every pass [F34]",
  async (one) => {
    await play(one, [(pass) => {
      pass.object.status!.revision = pass.object.spec.version;
    }], { rolls: [{ target: "Ready", of: ["Stored"] }] });
    const foreign: Condition = {
      type: "Scanned",
      status: "True",
      reason: "Clean",
      message: "see https://scan/?id=1",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    const { status } = await read(one);
    await one.client.status.patch(Release, KEY, {
      status: { conditions: [...status!.conditions!, foreign] },
    });
    await one.client.patch(Release, KEY, { spec: { version: "2" } });
    await one.settle();
    const after = await read(one);
    assert.equal(after.status?.revision, "2");
    assert.deepEqual(after.status?.conditions?.at(-1), foreign);
  },
);

releaseScenario(
  "A processor that throws does not fail the pass, and one may change the object",
  async (one) => {
    await play(one, [() => {}], {
      processors: [
        () => {
          throw new Error("processor");
        },
        ({ object, result }) => {
          object.status!.revision = result;
        },
      ],
    });
    const object = await read(one);
    assert.equal(object.status?.revision, "success");
    assert(isReady(object.status!.conditions!));
    assert(
      one.log.some(({ message }) =>
        message === "A result processor has thrown"
      ),
    );
  },
);

releaseScenario(
  "Cleanup holds the object until its steps are through, and says why",
  async (one) => {
    let held = true;
    await play(one, [() => {}], {
      cleanup: [() => {
        if (held) {
          throw new Waiting("StillUsed", "somebody reads it", {
            after: 10_000,
          });
        }
      }],
    });
    await one.until(async () => (await ready(one)).startsWith("True"));
    await one.client.delete(Release, KEY);
    await one.until(async () =>
      await ready(one) === "False StillUsed: somebody reads it"
    );
    held = false;
    await one.advance(10_000);
    assert.equal(await one.client.find(Release, KEY), undefined);
    assert(one.log.every(({ level }) => level !== "warn" && level !== "error"));
  },
);

releaseScenario(
  "An object that vanishes before its pass can say that it began is no error",
  async (one) => {
    let runs = 0;
    await play(one, [() => {
      runs++;
    }]);
    await one.until(async () => (await ready(one)).startsWith("True"));
    await one.client.delete(Release, KEY);
    await one.client.create(Release, { metadata: KEY, spec: { version: "2" } });
    await one.until(async () => (await ready(one)).startsWith("True"));
    assert.equal(runs, 2);
    assert(one.log.every(({ level }) => level !== "warn" && level !== "error"));
  },
);

releaseScenario(
  "An object that vanishes during its pass is no error",
  async (one) => {
    await play(one, [async () => {
      await one.client.delete(Release, KEY);
    }]);
    await one.settle();
    assert(
      one.log.every(({ level }) => level !== "warn" && level !== "error"),
      JSON.stringify(one.log),
    );
  },
);

releaseScenario(
  "Every pass of a flapping reconciler leaves a status without contradictions [F38]",
  async (one) => {
    let count = 0;
    const outcomes: (() => void)[] = [
      () => {},
      () => {
        throw new Waiting("NotYet", "wait");
      },
      () => {
        throw new Error("broken");
      },
      () => {
        throw new Stalled("Bad", "bad");
      },
      () => {
        throw new Failed("Harmless", "none", { harmless: true });
      },
    ];
    const findings: unknown[] = [];
    await play(one, [() => outcomes[count++ % outcomes.length]!()]);
    for (let round = 0; round < 12; round++) {
      findings.push(...lintStatus(await read(one)));
      nudges.trigger(KEY);
      await one.advance(2_000);
    }
    assert(count >= 10);
    assert.deepEqual(findings, []);
  },
);
