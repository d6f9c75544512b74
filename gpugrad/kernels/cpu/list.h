// Lists of plain elements. To include the C++ library's <vector> takes a compiler 0.1 s.
#pragma once

template <class T> struct List {
  T* first = nullptr;
  long length = 0, most = 0;

  List() = default;
  explicit List(long n) : first(new T[n]), length(n), most(n) {}  // not filled
  List(List&& other) : first(other.first), length(other.length), most(other.most) {
    other.first = nullptr;
  }
  ~List() { delete[] first; }
  List& operator=(List&&) = delete;

  void append(const T& x) {
    if (length == most) {
      T* longer = new T[most = 2 * most + 8];
      for (long k = 0; k < length; ++k) longer[k] = first[k];
      delete[] first;
      first = longer;
    }
    first[length++] = x;
  }

  T& operator[](long k) { return first[k]; }
  const T& operator[](long k) const { return first[k]; }
  T* begin() const { return first; }
  T* end() const { return first + length; }
};

inline long smaller(long a, long b) { return b < a ? b : a; }
inline long larger(long a, long b) { return a < b ? b : a; }
