/** Shows the OpenAPI document; requests are sent from the playground, so no key is here. */

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
