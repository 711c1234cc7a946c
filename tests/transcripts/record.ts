import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import type { Target } from "./http_client.ts";
import { findingText, GOLDEN, readTranscripts, Replay } from "./replay.ts";
import type { Transcript } from "./transcript.ts";

/**
 * Replays all transcripts against a real server and replaces what it answered
 * otherwise. What was equal stays, with its placeholders.
 */
export async function recordTranscripts(target: Target): Promise<void> {
  const transcripts = (await readTranscripts()).filter(({ needs = [] }) =>
    !needs.includes("expiry")
  );
  const replay = new Replay(target);
  let replaced = 0;
  try {
    for (const transcript of transcripts) {
      const findings = await replay.run(transcript);
      if (findings.length === 0) continue;
      replaced++;
      process.stdout.write(
        `${transcript.name}\n${findings.map(findingText).join("\n")}\n`,
      );
      const file = new URL(`${transcript.name}.json`, GOLDEN);
      const recorded = JSON.parse(await readFile(file, "utf8")) as Transcript;
      for (const { step: id, answer, isNewer } of findings) {
        const step = recorded.steps.find((step) => step.id === id);
        // Setup steps find what an earlier run left behind.
        if (!step || step.setup || answer === undefined) continue;
        Object.assign(isNewer ? step.newer! : step, { response: answer });
      }
      await writeFile(file, `${JSON.stringify(recorded, undefined, 2)}\n`);
    }
  } finally {
    await replay.cleanUp(transcripts);
  }
  process.stdout.write(
    `transcripts: ${replaced} of ${transcripts.length} differ\n`,
  );
}
