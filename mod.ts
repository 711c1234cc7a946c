export * from "./core/mod.ts";
