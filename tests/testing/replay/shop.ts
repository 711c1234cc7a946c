import { defineKind, type KubernetesObject } from "@coracle/operator";
import type { DefinedKind } from "@coracle/operator/crd";
import { z } from "zod";

/** Object of the operators whose runs are recorded and repeated. */
export interface Shop extends KubernetesObject {
  spec: { color: string; fails?: number | undefined };
  status?: {
    open?: boolean | undefined;
    since?: string | undefined;
    visitors?: number | undefined;
  } | undefined;
}

export const Shop: DefinedKind<Shop> = defineKind({
  group: "replay.coracle.dev",
  version: "v1",
  kind: "Shop",
  spec: z.object({ color: z.string(), fails: z.int().optional() }),
  status: z.object({
    open: z.boolean(),
    since: z.string(),
    visitors: z.int(),
  }).partial(),
});

/** Object with a workflow. */
export interface Kiosk extends KubernetesObject {
  spec: { goods: string };
  status?: { ready?: boolean | undefined } | undefined;
}

export const Kiosk: DefinedKind<Kiosk> = defineKind({
  group: "replay.coracle.dev",
  version: "v1",
  kind: "Kiosk",
  spec: z.object({ goods: z.string() }),
  status: z.object({ ready: z.boolean() }).partial(),
});
