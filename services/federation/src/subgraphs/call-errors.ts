import { GraphQLError } from 'graphql/index.js';

/** What clients hear of a subgraph that cannot be had. */
export function unavailable(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'SUBGRAPH_UNAVAILABLE' } });
}

/** What clients hear where too many want the same subgraph. */
export function busy(): GraphQLError {
  return new GraphQLError('The service has too many calls', { extensions: { code: 'SUBGRAPH_BUSY' } });
}
