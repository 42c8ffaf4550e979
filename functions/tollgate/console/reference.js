/** Shows the OpenAPI document; requests are sent from the playground, so this page never has a key. */

SwaggerUIBundle({
  url: new URL("v1/openapi.json", location.href).href,
  dom_id: "#reference",
  supportedSubmitMethods: [],
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  plugins: [() => ({ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } })],
});
