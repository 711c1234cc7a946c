import { Buffer } from "node:buffer";
import { asBuffer } from "../../json/byte_range.ts";
import {
  encodeEntry,
  encodeRun,
  type RecordedError,
  type RecordedRead,
  type RecordedStep,
  type RunRecord,
} from "./recording_format.ts";
import type { SecretTexts } from "./secrets.ts";

/** Run with all that it read and wrote, or steps of no run. */
export type Entry = RunRecord | Pick<RunRecord, "steps">;

/** Body of a request or an answer, as bytes or text. */
export type Body = Uint8Array | string;

/** What follows the names in a path. */
const BEYOND_NAMES = /(?:\/proxy\/|\?).*$/s;

/** Encoded entry of a run, or of steps without one. */
export function encoded(
  entry: Entry,
  bodies: readonly Body[],
): ReturnType<typeof encodeEntry> {
  return "key" in entry ? encodeRun(entry, bodies) : encodeEntry(entry, bodies);
}

/** Entry whose texts are hidden, apart from names of objects. */
export function withoutTexts(
  entry: Entry,
  bodies: readonly Body[],
  secrets: SecretTexts,
): ReturnType<typeof encoded> {
  const hide = (text: string) => secrets.hide(text);
  const shown = <T>(value: T) =>
    JSON.parse(secrets.hideJson(JSON.stringify(value))) as T;
  const failure = ({ message, api, ...rest }: RecordedError) => ({
    ...rest,
    message: hide(message),
    ...api && { api: { ...api, details: shown(api.details) } },
  });
  const hidden = bodies.map((body) =>
    Buffer.from(secrets.hideJson(textOfBody(body)))
  );
  let at = 0;
  const length = (body: number) => body < 0 ? body : hidden[at++]!.length;
  const steps = entry.steps.map((step): RecordedStep => {
    const { request, answer, error, event } = step;
    return {
      ...step,
      ...request && {
        request: {
          ...request,
          path: request.path.replace(BEYOND_NAMES, hide),
          body: length(request.body),
        },
      },
      ...answer && { answer: { ...answer, body: length(answer.body) } },
      ...error && { error: failure(error) },
      ...event && {
        event: {
          ...event,
          reason: hide(event.reason),
          message: hide(event.message),
        },
      },
    };
  });
  if (!("key" in entry)) return encoded({ steps }, hidden);
  const { decisions, reads, end } = entry;
  const answered = (answer: RecordedRead[1]) =>
    typeof answer !== "object" || answer === null || Array.isArray(answer)
      ? answer
      : "error" in answer
      ? { error: failure(answer.error) }
      : shown(answer);
  return encoded({
    ...entry,
    steps,
    reads: reads.map(([question, answer]) => [
      question.startsWith("index ") ? hide(question) : question,
      question.startsWith("keys ") ? answer : answered(answer),
    ]),
    decisions: decisions.map(([name, value]) => [name, shown(value)]),
    end: { ...end, ...end.error && { error: hide(end.error) } },
  }, hidden);
}

/** Text of a body that is bytes or text. */
export function textOfBody(body: Body): string {
  return typeof body === "string" ? body : asBuffer(body).toString();
}
