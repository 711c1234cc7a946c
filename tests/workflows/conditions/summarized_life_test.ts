import assert from "node:assert/strict";
import {
  Failed,
  isReady,
  REQUESTED_AT,
  Waiting,
} from "@coracle/operator/workflows";
import type { Notification } from "../../../workflows/conditions/notifier.ts";
import {
  conditionText,
  conditionTypes,
  FETCHED,
  releaseScenario,
} from "../../support/release_fixture.ts";
import { Release } from "../../support/release_kind.ts";

releaseScenario(
  "A request by annotation is answered once, and its token remembered [F13]",
  async (release) => {
    const { fixture } = release;
    const asked: boolean[] = [];
    const forced: boolean[] = [];
    await release.play([(pass) => {
      asked.push(pass.requested);
      forced.push(pass.forced);
      if (!pass.requested) pass.object.status!.revision = "r1";
    }]);
    const ask = async (token: string, force = false) => {
      const annotations = {
        [REQUESTED_AT]: token,
        ...(force && { "reconcile.coracle.dev/forceAt": token }),
      };
      await fixture.client.patch(Release, release.key, {
        metadata: { annotations },
      });
      await fixture.settle();
    };
    await ask("now");
    await ask("now");
    assert.deepEqual(asked, [false, true]);
    assert.equal((await release.read()).status?.lastHandledReconcileAt, "now");
    assert.equal((await release.read()).status?.revision, "r1", "it is kept");
    await ask(" ", true);
    assert.deepEqual(forced, [false, false, true]);
    const { status } = await release.read();
    assert.equal(status?.lastHandledReconcileAt, " ");
    assert.equal(status?.lastHandledForceAt, " ");
    await fixture.advance(60_000);
    assert.deepEqual(forced, [false, false, true, false]);
  },
);

releaseScenario(
  "A suspended object is left alone, and taken up again",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([() => {
      runs++;
    }], { suspended: ({ spec }) => spec.suspend === true });
    await release.ask({ suspend: true, version: "2" });
    await fixture.advance(3_600_000);
    assert.equal(runs, 1);
    const object = await release.read();
    assert.equal(object.status?.observedGeneration, 1, "nobody has looked");
    await release.ask({ suspend: false });
    await fixture.settle();
    assert.equal(runs, 2);
    assert.equal((await release.read()).status?.observedGeneration, 3);
  },
);

releaseScenario(
  "A change of the object gives up waiting, without an error or a word [F42]",
  async (release) => {
    const { fixture } = release;
    const reasons: unknown[] = [];
    await release.play([async (pass) => {
      if (pass.object.spec.version !== "1") return;
      await new Promise((_resolve, reject) => {
        pass.waitSignal.addEventListener("abort", () => {
          reasons.push(pass.waitSignal.reason);
          reject(pass.waitSignal.reason);
        });
      });
    }]);
    await release.ask({ version: "2" });
    await fixture.settle();
    assert.match(
      String(reasons[0]),
      /another run was requested/,
    );
    assert(isReady((await release.read()).status!.conditions!));
    assert.deepEqual(await release.events(), []);
    assert(release.isQuiet);
  },
);

releaseScenario(
  "A pass that a stop ends writes nothing about it",
  async (release) => {
    const { fixture } = release;
    await release.play([(pass) =>
      new Promise((_resolve, reject) => {
        pass.signal.addEventListener("abort", () => reject(pass.signal.reason));
      })]);
    const before = await release.read();
    await fixture.stop();
    assert.equal(
      conditionText(before, "Ready"),
      "Unknown Progressing: Reconciling generation 1",
    );
  },
);

releaseScenario(
  "News is told once: a new revision, the end of a failure, and nothing else [F44]",
  async (release) => {
    const { fixture } = release;
    let [revision, broken] = ["a", false];
    const notices: Notification[] = [];
    await release.play([async (pass) => {
      await pass.failing({ type: "FetchFailed", reason: "Unreachable" }, () => {
        if (broken) throw new Failed("Timeout", "too slow", { notify: false });
      });
      pass.object.status!.revision = revision;
      pass.set({ type: "Stored", status: "True", reason: "Stored" });
    }], {
      ...FETCHED,
      notification: {
        revision: ({ status }) => status?.revision,
        failures: ["FetchFailed"],
      },
      notifier: { notify: (_object, notice) => void notices.push(notice) },
    });
    await fixture.until(async () => (await release.events()).length > 0);
    assert.deepEqual(await release.events(), ["Normal NewArtifact: Has a"]);
    await fixture.advance(120_000);
    assert.equal(notices.length, 1, "no change, no event");
    [revision, broken] = ["b", true];
    await fixture.advance(60_000);
    assert.deepEqual(notices.map(({ reason }) => reason), [
      "NewArtifact",
      "Timeout",
    ]);
    [revision, broken] = ["a", false];
    await fixture.advance(1_000);
    const told = async (event: string) =>
      await fixture.until(async () => (await release.events()).includes(event));
    await told("Normal Succeeded: Has a");
    revision = "b";
    await fixture.advance(60_000);
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
  "Cleanup holds the object until its steps are through, and says why",
  async (release) => {
    const { fixture } = release;
    let held = true;
    await release.play([() => {}], {
      cleanup: [() => {
        if (held) {
          throw new Waiting("StillUsed", "somebody reads it", {
            after: 10_000,
          });
        }
      }],
    });
    await fixture.until(async () => (await release.ready()).startsWith("True"));
    await fixture.client.delete(Release, release.key);
    await fixture.until(async () =>
      await release.ready() === "False StillUsed: somebody reads it"
    );
    held = false;
    await fixture.advance(10_000);
    assert.equal(await fixture.client.find(Release, release.key), undefined);
    assert(release.isQuiet);
  },
);

releaseScenario(
  "An object that vanishes before its pass can say that it began is no error",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([() => {
      runs++;
    }]);
    await fixture.until(async () => (await release.ready()).startsWith("True"));
    await fixture.client.delete(Release, release.key);
    await fixture.client.create(Release, {
      metadata: release.key,
      spec: { version: "2" },
    });
    await fixture.until(async () => (await release.ready()).startsWith("True"));
    assert.equal(runs, 2);
    assert(release.isQuiet);
  },
);

releaseScenario(
  "An object that vanishes during its pass is no error",
  async (release) => {
    const { fixture } = release;
    await release.play([async () => {
      await fixture.client.delete(Release, release.key);
    }]);
    await fixture.settle();
    assert(release.isQuiet);
  },
);

releaseScenario(
  "A status is written in the end by a server that refuses writes for a while",
  async (release) => {
    const { fixture } = release;
    fixture.faults.add({
      verb: "patch",
      resource: "releases",
      effect: { status: 500 },
      count: 4,
    });
    await release.play([(pass) => {
      pass.object.status!.revision = pass.object.spec.version;
    }]);
    await release.untilReady("True");
    const { status } = await release.read();
    assert.equal(status?.revision, "1");
    assert.equal(status?.observedGeneration, 1);
  },
);

releaseScenario(
  "A run fails whose status the server refuses, and is retried",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([() => {
      if (runs++ > 0) return;
      fixture.faults.add({
        verb: "patch",
        resource: "releases",
        effect: { status: 403 },
        count: 1,
      });
    }]);
    await release.untilReady("True");
    assert.equal(runs, 2);
    assert(!release.isQuiet);
  },
);

releaseScenario(
  "Somebody who sets Ready by hand is corrected, and keeps what is theirs",
  async (release) => {
    const { fixture } = release;
    await release.play([() => {}]);
    await release.untilReady("True");
    const { status } = await release.read();
    const [ready] = status!.conditions!;
    const theirs = { ...ready!, type: "Theirs", reason: "Kept" };
    await fixture.client.status.patch(Release, release.key, {
      status: {
        conditions: [{ ...ready!, status: "False", reason: "Hand" }, theirs],
      },
    });
    await fixture.advance(60_000);
    await release.untilReady("True Succeeded");
    assert.equal(
      conditionText(await release.read(), "Theirs"),
      "True Kept: The object is in its desired state",
    );
  },
);

releaseScenario(
  "A suspended object is no longer Reconciling",
  async (release) => {
    const { fixture } = release;
    await release.play([() => {
      throw new Waiting("Busy", "somebody works");
    }], { suspended: ({ spec }) => spec.suspend === true });
    await release.untilReady("False Busy");
    assert(conditionTypes(await release.read()).includes("Reconciling"));
    await release.ask({ suspend: true });
    await fixture.settle();
    assert(!conditionTypes(await release.read()).includes("Reconciling"));
    assert.equal((await release.read()).status?.observedGeneration, undefined);
  },
);

releaseScenario(
  "Cleanup whose steps ask for another run holds the object until then",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([() => {}], {
      cleanup: [() => ++runs < 3 ? "requeue" : "success"],
    });
    await fixture.until(async () => (await release.ready()).startsWith("True"));
    await fixture.client.delete(Release, release.key);
    await fixture.until(async () =>
      await fixture.client.find(Release, release.key) === undefined
    );
    assert.equal(runs, 3);
  },
);

for (const part of ["Reconciliation", "Cleanup"] as const) {
  releaseScenario(
    `${part} whose steps ask for other runs pauses longer each time`,
    async (release) => {
      const { fixture } = release;
      const times: number[] = [];
      const step = () => {
        times.push(fixture.clock.now());
        return times.length < 14 ? "requeue" : "success";
      };
      const isCleanup = part === "Cleanup";
      await release.play([isCleanup ? () => {} : step], {
        cleanup: [isCleanup ? step : () => {}],
      });
      if (isCleanup) await fixture.client.delete(Release, release.key);
      await fixture.until(() => times.length === 14, 600_000);
      const pauses = times.slice(1).map((time, index) =>
        Math.round(time - times[index]!)
      );
      const doubled = Array.from(
        { length: 10 },
        (_, number) => 100 * 2 ** number,
      );
      assert.deepEqual(pauses, [0, ...doubled, 60_000, 60_000]);
    },
  );
}

releaseScenario(
  "A requested run is reported before its slow work",
  async (release) => {
    const { fixture } = release;
    const seen: (readonly string[])[] = [];
    await release.play([async () => {
      seen.push(conditionTypes(await release.read()));
    }]);
    const metadata = { annotations: { [REQUESTED_AT]: "now" } };
    await fixture.client.patch(Release, release.key, { metadata });
    await fixture.until(() => seen.length > 1);
    assert.deepEqual(seen[1], ["Reconciling", "Ready"]);
  },
);

releaseScenario(
  "A notice of a wait is sent if it is asked for",
  async (release) => {
    const notices: Notification[] = [];
    await release.play([() => {
      throw new Waiting("Busy", "see https://host/x?token=abc", {
        notify: true,
      });
    }], {
      notifier: { notify: (_object, notice) => void notices.push(notice) },
    });
    const [notice] = notices;
    assert.equal(notice?.severity, "info");
    assert.equal(notice?.message, "see https://host/x");
  },
);

releaseScenario(
  "A condition shows no query of a URL",
  async (release) => {
    await release.play([(pass) => {
      const message = "from https://host/x?token=abc";
      pass.set({ type: "Stored", status: "True", reason: "Stored", message });
    }]);
    assert.equal(
      conditionText(await release.read(), "Stored"),
      "True Stored: from https://host/x",
    );
  },
);
