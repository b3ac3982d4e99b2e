/**
 * Selects objects by one field. The signs that selectors give a meaning are escaped as
 * k8s.io/apimachinery/pkg/fields has it.
 */
export function fieldIs(field: string, value: string): string {
  return `${field}=${value.replace(/[\\=,]/g, '\\$&')}`;
}
