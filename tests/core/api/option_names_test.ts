import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkOptionNames,
  nearestName,
} from "../../../core/api/option_names.ts";

test("checkOptionNames lets known options pass", () => {
  checkOptionNames({ retry: false }, ["retry", "timeout"], "a controller");
  checkOptionNames({}, [], "a controller");
});

test("checkOptionNames refuses an unknown option and names the nearest", () => {
  assert.throws(
    () =>
      checkOptionNames({ maxIntervall: 1 }, ["maxInterval"], "a controller"),
    /no option "maxIntervall": did you mean "maxInterval"\?/,
  );
  assert.throws(
    () => checkOptionNames({ zebra: 1 }, ["retry", "timeout"], "a controller"),
    /no option "zebra", only retry, timeout/,
  );
  assert.throws(
    () => checkOptionNames(null as unknown as object, [], "a controller"),
    TypeError,
  );
});

test("nearestName finds what was probably meant", () => {
  const known = ["labelSelector", "fieldSelector", "retry"];
  assert.equal(nearestName("labelselector", known), "labelSelector");
  assert.equal(nearestName("retries", known), "retry");
  assert.equal(nearestName("x", known), undefined);
});
