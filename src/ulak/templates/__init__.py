"""Texts that are filled in: named templates in several languages, and the sandbox in which every room renders."""
