/** Shows the OpenAPI document; requests are tried in the playground, so no key comes to this page. */

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
