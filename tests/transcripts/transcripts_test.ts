import assert from "node:assert/strict";
import process from "node:process";
import { after, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { systemClock } from "@coracle/operator/client";
import { ON_REAL_CLUSTER } from "../support/scenario_cluster.ts";
import type { Target } from "./http_client.ts";
import { realTarget } from "./real_target.ts";
import { findingText, readTranscripts, Replay } from "./replay.ts";
import type { Transcript } from "./transcript.ts";

/**
 * Replays what a real kube-apiserver answered against the embedded server,
 * or against the real cluster of the run. TRANSCRIPTS_ONLY is a pattern of
 * scenario names.
 */
const only = new RegExp(process.env["TRANSCRIPTS_ONLY"] ?? "");
const transcripts = (await readTranscripts()).filter(({ name }) =>
  only.test(name)
);

/** Features that a transcript needs and the server lacks. */
function missing({ needs = [] }: Transcript): string | false {
  return ON_REAL_CLUSTER && needs.includes("expiry")
    ? "a young cluster has forgotten nothing yet"
    : false;
}

let server: ApiServer | undefined;
let replaying: Promise<Replay> | undefined;

async function target(): Promise<Target> {
  if (ON_REAL_CLUSTER) return await realTarget();
  // The calendar stands still, as ages of "0s" were recorded; timers go on.
  const now = systemClock.wallTime();
  server = await ApiServer.start({
    clock: { ...systemClock, wallTime: () => now },
  });
  return {
    url: server.url,
    token: server.token,
    authority: server.certificateAuthority,
  };
}

/** Replays started by the first test; later tests wait for it. */
function replay(): Promise<Replay> {
  return replaying ??= begin();
}

async function begin(): Promise<Replay> {
  const replay = new Replay(await target());
  // All begin at once, so that the waiting of some overlaps with the others.
  for (const transcript of transcripts) {
    if (!missing(transcript)) void replay.run(transcript);
  }
  return replay;
}

after(async () => {
  await (await replaying)?.cleanUp(transcripts);
  await server?.stop();
});

for (const transcript of transcripts) {
  const title = `the server answers as recorded: ${transcript.name}`;
  test(title, { skip: missing(transcript) }, async () => {
    const findings = await (await replay()).run(transcript);
    assert.equal(
      findings.length,
      0,
      `${transcript.about}\n${findings.map(findingText).join("\n")}`,
    );
  });
}

test("A server of 1.37 answers as the real one of that version did", {
  skip: ON_REAL_CLUSTER && "the tests above compare it",
}, async () => {
  const server = await ApiServer.start({ version: "1.37" });
  const replay = new Replay({
    url: server.url,
    token: server.token,
    authority: server.certificateAuthority,
  });
  const newer = transcripts.filter(({ steps }) =>
    steps.some((step) => step.newer)
  );
  const findings = await Promise.all(newer.map((each) => replay.run(each)));
  await replay.cleanUp(newer);
  await server.stop();
  assert.deepEqual(findings.flat().map(findingText), []);
});
