import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { KubernetesObject, ResolvedKind } from "@coracle/operator/kinds";
import { collectionPath } from "../../../core/api/kind.ts";
import * as kinds from "../../../core/kinds/mod.ts";
import { docComments } from "../../../tools/doc_comments.ts";

test("kinds describe every resource by its path", () => {
  const paths = new Map<string, string>();
  const { schemaOf: _, ...described } = kinds;
  for (const [name, kind] of Object.entries(described)) {
    const path = collectionPath(kind as ResolvedKind);
    assert.equal(paths.get(path), undefined, `${name} repeats ${path}`);
    paths.set(path, name);
  }
  assert.equal(paths.get("/apis/apps/v1/deployments"), "Deployment");
  assert.equal(paths.get("/api/v1/events"), "Event");
  assert.equal(paths.get("/apis/events.k8s.io/v1/events"), "EventsEvent");
  assert.equal(
    paths.get("/apis/autoscaling/v2/horizontalpodautoscalers"),
    "HorizontalPodAutoscaler",
  );
  assert.ok(paths.size >= 55, `received ${paths.size}`);
});

test("kinds are objects to whatever works on objects, and check their fields", () => {
  const deployment: kinds.Deployment = {
    metadata: { name: "web" },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: "web" } },
      strategy: { rollingUpdate: { maxSurge: "25%", maxUnavailable: 1 } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "web", image: "web:1" }] },
      },
    },
  };
  const object: KubernetesObject = deployment;
  assert.equal(object.metadata.name, "web");
  // @ts-expect-error a Deployment needs a selector
  const wrong: kinds.DeploymentSpec = { template: {} };
  assert.ok(wrong);
});

const FOLDER = new URL("../../../core/kinds/", import.meta.url);

test("Docs of kinds link to the reference, and no doc repeats a name", () => {
  const linked: string[] = [];
  const echoes: string[] = [];
  for (const file of globSync("*_v*.ts", { cwd: FOLDER })) {
    const text = readFileSync(new URL(file, FOLDER), "utf8");
    for (const { symbol, text: doc } of docComments(text, file)) {
      if (/ https:\/\/kubernetes\.io\/docs\/reference\/\S+\/$/.test(doc)) {
        linked.push(symbol);
      }
      const name = symbol.slice(symbol.lastIndexOf(".") + 1);
      const letters = doc.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
      if (letters === name.toLowerCase()) echoes.push(symbol);
    }
  }
  assert.deepEqual(echoes, []);
  const described = Object.keys(kinds).filter((name) => name !== "schemaOf");
  assert.deepEqual(described.filter((name) => !linked.includes(name)), []);
});
