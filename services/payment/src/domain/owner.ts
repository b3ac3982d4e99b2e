/** Whose things a caller sees: those of a subject, or of all where undefined. */
export type Owner = string | undefined;
