import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { wholeRange } from "../../../core/json/byte_range.ts";
import { EventScanner } from "../../../core/json/event_scanner.ts";
import {
  assertHeader,
  hasHeader,
  isWatchEvent,
} from "../../support/expected_header.ts";
import {
  damaged,
  jsonText,
  kubernetesText,
  watchEventText,
} from "../../support/json_documents.ts";
import { withoutLeapt } from "../../support/leapt_values.ts";

const RUNS = { numRuns: 600 };

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Text of decoded bytes. */
function decoded(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}

test("EventScanner returns the header that JSON.parse does, or rejects the line", () => {
  const scanner = new EventScanner();
  fc.assert(
    fc.property(fc.oneof(watchEventText, jsonText), (text) => {
      const value = parsed(decoded(text));
      const line = wholeRange(text);
      if (!isWatchEvent(value)) {
        assert.throws(() => scanner.scan(line), SyntaxError);
        return;
      }
      assert.equal(scanner.scan(line), value.type);
      assertHeader(scanner.header, value.object);
      assertHeader(scanner.header.copy(), value.object);
    }),
    RUNS,
  );
});

test("EventScanner.scanObject returns the header that JSON.parse does", () => {
  const scanner = new EventScanner();
  fc.assert(
    fc.property(kubernetesText, fc.nat(70), (text, offset) => {
      const value = parsed(decoded(text));
      const bytes = Buffer.from(" ".repeat(offset) + text + '"}');
      const range = { bytes, start: offset, end: bytes.length - 2 };
      if (!hasHeader(value)) {
        assert.throws(() => scanner.scanObject(range), SyntaxError);
      } else assertHeader(scanner.scanObject(range), value);
    }),
    RUNS,
  );
});

test("EventScanner never returns a wrong header for damaged bytes", () => {
  const scanner = new EventScanner();
  let refused = 0;
  let accepted = 0;
  fc.assert(
    fc.property(damaged(watchEventText), (text) => {
      const value = parsed(decoded(text));
      let type: string;
      try {
        type = scanner.scan(wholeRange(text));
      } catch (error) {
        assert.ok(error instanceof SyntaxError);
        assert.ok(!isWatchEvent(value), "a good event was refused");
        refused++;
        return;
      }
      accepted++;
      // At most the skipped values are malformed: without them the text is valid.
      const rest = parsed(withoutLeapt(decoded(text)));
      assert.ok(isWatchEvent(rest));
      assert.equal(type, rest.type);
      assert.equal(
        scanner.header.name,
        rest.object.metadata === null
          ? ""
          : (rest.object.metadata as { name?: string } | undefined)?.name ?? "",
      );
      if (isWatchEvent(value)) assertHeader(scanner.header, value.object);
    }),
    { numRuns: 1200 },
  );
  assert.ok(refused > 0 && accepted > 0, `${refused} and ${accepted}`);
});

test("EventScanner scans real Pods", () => {
  const scanner = new EventScanner();
  const lines = readFileSync(
    new URL("../../../bench/data/pods.ndjson", import.meta.url),
    "utf8",
  ).trim().split("\n");
  for (const line of lines) {
    const type = scanner.scan(
      wholeRange(`{"object":${line} , "type":"DELETED"}`),
    );
    assert.equal(type, "DELETED");
    assertHeader(scanner.header, JSON.parse(line));
  }
});

test("EventScanner rejects a line that is truncated anywhere", () => {
  const scanner = new EventScanner();
  const text =
    '{"type":"ADDED","object":{"metadata":{"name":"a\\u0062","labels":{"x":"[\\"{"}},"spec":[{},[1.5e3,"}"],true,null]}}';
  const bytes = Buffer.from(text);
  for (let end = 0; end < bytes.length; end++) {
    // Bytes after the end must not be read.
    assert.throws(
      () => scanner.scan({ bytes, start: 0, end }),
      SyntaxError,
      text.slice(0, end),
    );
  }
  assert.equal(scanner.scan({ bytes, start: 0, end: bytes.length }), "ADDED");
  assert.equal(scanner.header.name, "ab");
});

test("EventScanner uses the last of repeated keys, as JSON.parse does", () => {
  const scanner = new EventScanner();
  const text = `{"type":"ADDED","object":{"metadata":{"name":"x"}},
    "object":{"metadata":{"name":"y","uid":"1"},"metadata":{"name":"z"},
    "met\\u0061data":{"name":"a","name":"b"}},"type":"DELETED"}`;
  assert.equal(scanner.scan(wholeRange(text)), "DELETED");
  assert.equal(scanner.header.name, "b");
  assert.equal(scanner.header.uid, "");
});

test("EventScanner scans BOOKMARK and ERROR events", () => {
  const scanner = new EventScanner();
  const bookmark =
    '{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12746","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}}';
  assert.equal(scanner.scan(wholeRange(bookmark)), "BOOKMARK");
  assert.equal(scanner.header.resourceVersion, "12746");
  assert.equal(scanner.header.name, "");
  assert.equal(scanner.header.annotation("k8s.io/initial-events-end"), "true");
  const gone =
    '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (7)","reason":"Expired","code":410}}';
  assert.equal(scanner.scan(wholeRange(gone)), "ERROR");
  assert.equal(scanner.header.kind, "Status");
});

test("ObjectHeader rejects a malformed field when it is read", () => {
  const scanner = new EventScanner();
  const header = scanner.scanObject(wholeRange(
    '{"metadata":{"name":"a","labels":{"a":"b" "c":"d"},"finalizers":["x",],"annotations":{"a":tru},"ownerReferences":[{"a"}]}}',
  ));
  assert.equal(header.name, "a");
  for (
    const read of [
      () => header.label("a"),
      () => header.labels,
      () => header.hasFinalizer("x"),
      () => header.finalizers,
      () => header.annotation("z"),
      () => header.ownerReferences,
    ]
  ) assert.throws(read, SyntaxError);
});

test("EventScanner's error messages do not quote the text", () => {
  const scanner = new EventScanner();
  for (
    const text of [
      '{"type":hunter2}',
      '{"type":"ADDED","object":"hunter2"}',
      '{"hunter2"}',
    ]
  ) {
    assert.throws(() => scanner.scan(wholeRange(text)), (error: Error) => {
      assert.match(error.message, /^Cannot read a watch event: .*: received /);
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
  }
});

test("EventScanner skips values larger than its window and deeply nested ones", () => {
  const scanner = new EventScanner();
  for (const size of [65_400, 65_408, 65_409, 65_500, 131_000, 400_000]) {
    for (const filler of ['"\\\\"', '"\\""', "[]", '{"}":"{"}']) {
      const spec = `[${`${filler},`.repeat(size / (filler.length + 1))}0]`;
      const text =
        `{"type":"ADDED","object":{"spec":${spec},"metadata":{"name":"web"}}}`;
      assert.equal(scanner.scan(wholeRange(text)), "ADDED");
      assert.equal(scanner.header.name, "web");
    }
  }
  const deep = "[".repeat(200_000) + "]".repeat(200_000);
  const text = `{"metadata":{"name":"web","labels":{"a":${deep}}},"x":${deep}}`;
  assert.equal(scanner.scanObject(wholeRange(text)).name, "web");
});

test("EventScanner refuses what follows an event", () => {
  const line = '{"type":"ADDED","object":{"metadata":{}}}';
  const scan = (text: string) => new EventScanner().scan(wholeRange(text));
  assert.equal(scan(`${line} `), "ADDED");
  for (const more of ["x", "{}", ",", "}"]) {
    assert.throws(
      () => scan(line + more),
      /nothing may follow the value/,
      more,
    );
  }
});

test("EventScanner refuses a slash in a name or namespace, however it is written", () => {
  const scanner = new EventScanner();
  for (const field of ["name", "namespace"]) {
    for (const slash of ["/", "\\/", "\\u002f", "\\u002F"]) {
      const text = `{"metadata":{"${field}":"a${slash}b"}}`;
      assert.throws(
        () => scanner.scanObject(wholeRange(text)),
        {
          name: "SyntaxError",
          message: new RegExp(`"${field}" contains a slash`),
        },
      );
    }
    const text = `{"metadata":{"${field}":"a\\u002eb","uid":"a/b"}}`;
    scanner.scanObject(wholeRange(text));
    assert.equal(scanner.header[field as "name"], "a.b");
  }
});
