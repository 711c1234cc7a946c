import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { after, before, test } from "node:test";
import { ApiServer } from "../../core/apiserver/server.ts";
import { systemClock } from "../../core/clock.ts";
import type { Target } from "./http_client.ts";
import { findingText, readTranscripts, Replay } from "./replay.ts";

/**
 * Replays what a real kube-apiserver 1.32 answered against the embedded server,
 * or against the server in TRANSCRIPTS_SERVER (with TRANSCRIPTS_TOKEN and the
 * authority's certificate in the file TRANSCRIPTS_CA). TRANSCRIPTS_ONLY is a
 * pattern of scenario names, TRANSCRIPTS_WITHOUT a list of needs that the
 * server does not meet.
 */
const { env } = process;
const without = (env["TRANSCRIPTS_WITHOUT"] ?? "").split(",");
const only = new RegExp(env["TRANSCRIPTS_ONLY"] ?? "");
const transcripts = (await readTranscripts()).filter(({ name, needs = [] }) =>
  only.test(name) && !needs.some((need) => without.includes(need))
);

let server: ApiServer | undefined;
let replay: Replay;

async function target(): Promise<Target> {
  const url = env["TRANSCRIPTS_SERVER"];
  if (url !== undefined) {
    const file = env["TRANSCRIPTS_CA"];
    return {
      url,
      token: env["TRANSCRIPTS_TOKEN"] ?? "",
      authority: file === undefined ? undefined : await readFile(file, "utf8"),
    };
  }
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

before(async () => {
  replay = new Replay(await target());
  // All begin at once, so that the waiting of some overlaps with the others.
  for (const transcript of transcripts) void replay.run(transcript);
});

after(async () => {
  await replay.cleanUp(transcripts);
  await server?.stop();
});

for (const transcript of transcripts) {
  test(`the server answers as recorded: ${transcript.name}`, async () => {
    const findings = await replay.run(transcript);
    assert.equal(
      findings.length,
      0,
      `${transcript.about}\n${findings.map(findingText).join("\n")}`,
    );
  });
}
