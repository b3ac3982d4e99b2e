import type { Operation } from './operation.ts';

/** What the federation service does. */
export const federationOperations: readonly Operation[] = [
  {
    name: 'Read the schemas of services, the graph of them and its usage, and check a schema against it',
    scope: 'schemas:read',
    rest: [
      'GET /schemas',
      'GET /schemas/supergraph',
      'GET /schemas/history',
      'GET /schemas/usage',
      // It changes nothing.
      'POST /schemas/check',
      'POST /schemas/explain',
    ],
  },
  {
    name: 'Add, read anew and remove the schema of a service, and pin a graph',
    scope: 'schemas:write',
    rest: [
      'POST /schemas/introspect',
      'POST /schemas/refresh',
      'DELETE /schemas/:service',
      'PUT /schemas/supergraph/pin',
      'DELETE /schemas/supergraph/pin',
    ],
  },
  {
    name: 'Read the documents that clients may ask for',
    scope: 'schemas:read',
    rest: ['GET /documents'],
  },
  {
    name: 'Publish and remove documents that clients may ask for',
    scope: 'schemas:write',
    rest: ['POST /documents', 'DELETE /documents/:client', 'DELETE /documents/:client/:id'],
  },
  {
    // Each service asks for the scope of each field by itself.
    name: 'Query the graph; read health and documentation',
    scope: undefined,
    rest: [
      'POST /graphql',
      'GET /graphql',
      'POST /graphql/:contract',
      'GET /graphql/:contract',
      'GET /health',
      'GET /openapi.json',
      'GET /docs',
      'GET /docs/*',
    ],
  },
];
