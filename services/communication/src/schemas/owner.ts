import { Type } from 'typebox';

/** Members of a query: whose things a request is about, where the caller's scope is for all subjects. */
export const owner = {
  subject: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'Whose; the caller where absent. Others need `:admin`' }),
  ),
};
