/**
 * Selectors in one place: which objects are meant, by labels and by fields.
 *
 * @module
 */
export * from "./label_requirement.ts";
export * from "./label_selector.ts";
export * from "./field_selector.ts";
