/** Prelude of a subgraph of Federation 2 with rules of access. */
export const LINK = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.6", import: ["@key", "@shareable",
  "@external", "@requires", "@interfaceObject", "@authenticated", "@requiresScopes", "@policy"])`;

/** Somebody with these scopes. */
export const callerWith = (...scopes: readonly string[]) => ({ caller: { scopes: new Set(scopes) } });

/** Nobody knows who calls. */
export const NOBODY = { caller: undefined };

/** The errors of what is withheld. */
export const withheld = (...paths: readonly (readonly string[])[]) =>
  paths.map((path) => ({
    message: 'Unauthorized field or type',
    path,
    extensions: { code: 'UNAUTHORIZED_FIELD_OR_TYPE' },
  }));
