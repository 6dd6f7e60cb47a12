# Writes OUTPUT, a C++ file with a hash of FILES: kernels that another build has cached are then told apart.
set(_all "")
foreach(_file IN LISTS FILES)
  file(SHA256 "${_file}" _hash)
  string(APPEND _all "${_hash}")
endforeach()
string(SHA256 _hash "${_all}")
file(WRITE "${OUTPUT}" "namespace triton_metal {\nconst char *hostDeviceSourceHash() { return \"${_hash}\"; }\n} // namespace triton_metal\n")
