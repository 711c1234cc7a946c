import { Buffer } from "node:buffer";
import { EventScanner } from "../core/json/event_scanner.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { PodFactory } from "./support/pods.ts";
import { garbageOf, peakRss, timeOf } from "./support/sampling.ts";

const EVENTS = 400;

function makeEvents(): Buffer[] {
  const pods = new PodFactory();
  return Array.from({ length: EVENTS }, (_, i) => pods.event("MODIFIED", i));
}

/** Fields that a consumer reads of each event. */
interface Seen {
  readonly type: string;
  readonly name: string;
  readonly resourceVersion: string;
}

function measure(read: (event: Buffer) => Seen): readonly Measure[] {
  const events = makeEvents();
  for (const event of events) {
    const { type, object } = JSON.parse(event.toString());
    const seen = read(event);
    verify(
      seen.type === type && seen.name === object.metadata.name &&
        seen.resourceVersion === object.metadata.resourceVersion,
      `the header of ${seen.name} must be right`,
    );
  }
  let last: unknown;
  const work = () => {
    for (const event of events) last = read(event);
    return last;
  };
  return [
    { unit: "µs/event", value: timeOf(work, EVENTS) },
    { unit: "B garbage/event", value: garbageOf(work, EVENTS) },
    peakRss(),
  ];
}

function coracle(): readonly Measure[] {
  const scanner = new EventScanner();
  const line: { bytes: Uint8Array; start: number; end: number } = {
    bytes: Buffer.alloc(0),
    start: 0,
    end: 0,
  };
  const { header } = scanner;
  const seen = {
    type: "",
    get name() {
      return header.name;
    },
    get resourceVersion() {
      return header.resourceVersion;
    },
  };
  return measure((event) => {
    line.bytes = event;
    line.end = event.length;
    seen.type = scanner.scan(line);
    return seen;
  });
}

function jsonParse(): readonly Measure[] {
  return measure((event) => {
    const { type, object } = JSON.parse(event.toString());
    return { type, ...object.metadata };
  });
}

export const bench: Bench = {
  name: "scan",
  what: "scan of a watch event of a real Pod (7 KB)",
  subjects: [
    { name: "coracle", run: () => Promise.resolve(coracle()) },
    {
      name: "JSON.parse",
      rival: true,
      run: () => Promise.resolve(jsonParse()),
    },
  ],
};
