import type {
  ResponseStream,
  ServerResponse,
  StreamWriter,
} from "../http/exchange.ts";
import { isStream } from "../http/exchange.ts";

/** Faults in the sending of a body. */
export interface BodyFaults {
  /** Number of bytes after which the connection breaks. */
  readonly cutAfter?: number | undefined;
  /** Number of chunks after which the body stalls; each chunk is an event of a watch. */
  readonly stallAfter?: number | undefined;
  readonly withoutEndBookmark?: boolean | undefined;
  /** Revisions of dropped events: from the first revision to before the second. */
  readonly withhold?:
    | { readonly from: number; readonly to: number }
    | undefined;
}

const END_BOOKMARK = new TextEncoder().encode("k8s.io/initial-events-end");

/** Response with faults injected into its body. */
export function withBodyFaults(
  response: ServerResponse,
  faults: BodyFaults,
): ServerResponse {
  const { body } = response;
  if (isStream(body)) {
    return { ...response, body: faultyStream(body, faults) };
  }
  if (faults.cutAfter === undefined) return response;
  const blocks = body instanceof Uint8Array ? [body] : body;
  return { ...response, body: faultyStream(streamOf(blocks), faults) };
}

/** Stream of blocks, which can be cut at any byte. */
function streamOf(blocks: Iterable<Uint8Array>): ResponseStream {
  return {
    start(writer) {
      for (const block of blocks) writer.write(block);
      writer.end();
      return () => {};
    },
  };
}

/** Stream that forwards another stream until a fault occurs. */
function faultyStream(
  stream: ResponseStream,
  { cutAfter, stallAfter, withoutEndBookmark, withhold }: BodyFaults,
): ResponseStream {
  const start = (writer: StreamWriter) => {
    let chunks = 0;
    let bytes = 0;
    const write = (chunk: Uint8Array) => {
      if (stallAfter !== undefined && chunks >= stallAfter) return;
      chunks++;
      if (withoutEndBookmark && includes(chunk, END_BOOKMARK)) return;
      if (withhold !== undefined) {
        const revision = eventRevision(chunk);
        if (revision >= withhold.from && revision < withhold.to) return;
      }
      if (cutAfter === undefined || bytes + chunk.length <= cutAfter) {
        bytes += chunk.length;
        writer.write(chunk);
        return;
      }
      writer.write(chunk.subarray(0, cutAfter - bytes));
      bytes = cutAfter;
      writer.destroy();
    };
    return stream.start(forwarded(writer, write));
  };
  return { start };
}

/** Writer that writes chunks in another way. */
export function forwarded(
  writer: StreamWriter,
  write: (chunk: Uint8Array) => void,
): StreamWriter {
  return {
    get pending() {
      return writer.pending;
    },
    write,
    end: () => writer.end(),
    destroy: () => writer.destroy(),
  };
}

const decoder = new TextDecoder();

/** Revision of a watch event, which is one chunk of JSON. */
export function eventRevision(chunk: Uint8Array): number {
  const text = decoder.decode(chunk);
  if (!text.startsWith("{")) return 0;
  const { type, object } = JSON.parse(text.split("\n", 1)[0] as string);
  if (type === "ERROR") return 0;
  return Number(object?.metadata?.resourceVersion ?? 0);
}

function includes(bytes: Uint8Array, part: Uint8Array): boolean {
  const first = part[0] as number;
  for (
    let at = bytes.indexOf(first);
    at >= 0 && at + part.length <= bytes.length;
    at = bytes.indexOf(first, at + 1)
  ) {
    if (part.every((byte, index) => bytes[at + index] === byte)) return true;
  }
  return false;
}
