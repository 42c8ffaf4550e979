"""The client format of OpenAI's moderations API."""
