import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { apiVersionOf } from "../../../core/api/kind.ts";
import {
  rowConditionsOf,
  rowOf,
} from "../../../dev/apiserver/builtin/columns/table_rows.ts";
import { builtinDefinitions } from "../../../dev/apiserver/builtin/builtin_definitions.ts";

/** Object with the table row that Kubernetes 1.32 returned for it. */
interface RecordedRow {
  readonly resource: string;
  readonly now: string;
  readonly object: UntypedObject;
  readonly cells: readonly unknown[];
  readonly conditions?: readonly unknown[];
}

const recorded = readFileSync(
  new URL("./tables/rows.ndjson", import.meta.url),
  "utf8",
).trimEnd().split("\n").map((line): RecordedRow => JSON.parse(line));

/** Cells without ages of a few seconds, which depend on the speed of the recorded server. */
function comparable(cells: readonly unknown[]): readonly unknown[] {
  return cells.map((cell) =>
    typeof cell === "string" && /^\ds$/.test(cell) ? "0s" : cell
  );
}

for (const [index, row] of recorded.entries()) {
  const { resource, object, now, cells, conditions } = row;
  test(`rowOf returns the recorded row of ${object.kind} ${object.metadata.name} (${index})`, () => {
    const received = rowOf(resource, object, Date.parse(now));
    assert.deepEqual(comparable(received), comparable(cells));
    assert.deepEqual(rowConditionsOf(resource, object), conditions);
  });
}

test("rowOf returns a cell for each column of every built-in resource", () => {
  const spec = {
    template: {},
    jobTemplate: { spec: { template: {} } },
    priorityLevelConfiguration: {},
    scaleTargetRef: {},
    source: {},
    drivers: [],
  };
  for (const { group, plural, kind, versions } of builtinDefinitions()) {
    for (
      const version of versions.filter(({ columns }) => columns.length > 0)
    ) {
      const apiVersion = apiVersionOf({ group, version: version.name });
      const object = {
        apiVersion,
        kind,
        metadata: { name: "empty" },
        spec,
        involvedObject: {},
        regarding: {},
        roleRef: {},
      } as unknown as UntypedObject;
      assert.equal(
        version.cells(object, 0).length,
        // kube-apiserver gives addresses an age, but no column for it.
        version.columns.length + (plural === "ipaddresses" ? 1 : 0),
        `${plural} in ${apiVersion}`,
      );
    }
  }
});

test("rowOf returns the controller of a revision with its group", () => {
  const revision = {
    metadata: {
      name: "web-1",
      ownerReferences: [{
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        name: "web",
        uid: "1",
        controller: true,
      }],
    },
    revision: 3,
  } as UntypedObject;
  assert.deepEqual(
    rowOf("controllerrevisions.apps", revision, 0),
    ["web-1", "statefulset.apps/web", 3, "<unknown>"],
  );
});

test("rowOf counts hosts and addresses beyond the first three", () => {
  const slice = {
    metadata: { name: "web" },
    addressType: "IPv4",
    ports: [{ port: 80 }, { name: "named" }, {}, { port: 81 }],
    endpoints: [{ addresses: ["1.1.1.1", "1.1.1.2"] }, {
      addresses: ["1.1.1.3", "1.1.1.4", "1.1.1.5"],
    }],
  } as UntypedObject;
  assert.deepEqual(rowOf("endpointslices.discovery.k8s.io", slice, 0), [
    "web",
    "IPv4",
    "80,named,* + 1 more...",
    "1.1.1.1,1.1.1.2,1.1.1.3 + 2 more...",
    "<unknown>",
  ]);
});
